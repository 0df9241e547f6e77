// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_replicate_pil.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

constexpr int kLargestNumber = 1024;

struct ImgReplicatePilOptions : public Options {
  int64_t num_times = 2;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_times", &num_times, Doc("Number of equal views.").Between(1, kLargestNumber));
  }
};

// What the views borrow, until the next sample.
struct LentImage {
  Image image;
};

// Makes the one image of a sample a view of pixels in `original`, so that copies of it cost nothing.
void LendImage(Image* original, Image* image) {
  if (image->is_borrowed()) return;
  std::swap(*original, *image);
  image->Borrow(*original);
}

}  // namespace

int ImgReplicatePil::CopiesOf(int views) const {
  const int64_t copies = int64_t{views} * num_times_;
  return copies > kLargestNumber ? 0 : static_cast<int>(copies);
}

absl::Status ImgReplicatePil::Apply(const TransformContext& context, Sample* sample) const {
  const int before = sample->num_views();
  if (before * num_times_ > kLargestNumber) {
    return absl::InvalidArgumentError(
        absl::StrCat("makes ", before * num_times_, " views, expected at most ", kLargestNumber));
  }
  // With several images one may already borrow what another would overwrite.
  if (before == 1) LendImage(&context.scratch.Get<LentImage>().image, &sample->view(0).image);
  sample->SetNumViews(before * num_times_);
  // From the end, so that no view is overwritten before it was copied.
  for (int target = sample->num_views() - 1; target > 0; --target) {
    const View& source = sample->view(target / num_times_);
    View& view = sample->view(target);
    if (&view == &source) continue;
    view.image.CopyFrom(source.image);
    view.flipped = source.flipped;
    view.table = source.table;
    view.erased = source.erased;
  }
  return absl::OkStatus();
}

absl::Status ImgReplicatePil::Plan(const TransformContext&, const Image&, std::vector<ViewPlan>* plans) const {
  SSL_RETURN_IF_ERROR(CheckUntouched(*plans));
  plans->resize(plans->size() * static_cast<size_t>(num_times_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgReplicatePil(const ConfigNode& entry, const BuildContext& context) {
  ImgReplicatePilOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgReplicatePil>(static_cast<int>(options.num_times));
}

std::unique_ptr<Options> MakeImgReplicatePilOptions() { return std::make_unique<ImgReplicatePilOptions>(); }

}  // namespace ssl
