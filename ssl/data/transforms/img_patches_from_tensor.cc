// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_patches_from_tensor.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/image_patches.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPatchesFromTensorOptions : public Options {
  int64_t num_patches = 9;
  int64_t patch_jitter = 21;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_patches", &num_patches,
                  Doc("Views that become of the image: a square number.").Between(1, 1024));
    visitor.Field("patch_jitter", &patch_jitter,
                  Doc("How much smaller than its cell a patch is.").Between(1, 65535).Unit("pixels"));
  }
};

struct PatchBoxes {
  std::vector<CropBox> boxes;
};

}  // namespace

absl::Status ImgPatchesFromTensor::Apply(const TransformContext& context, Sample* sample) const {
  if (sample->num_views() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("makes patches of one image, but gets ", sample->num_views()));
  }
  SSL_RETURN_IF_ERROR(CheckNothingErased(sample->view(0)));
  ApplyFlip(&sample->view(0));
  Image& source = context.scratch.image;
  std::swap(source, sample->view(0).image);
  std::vector<CropBox>& boxes = context.scratch.Get<PatchBoxes>().boxes;
  CounterRandom random = context.Random(0);
  SSL_RETURN_IF_ERROR(DrawPatchBoxes(source.height(), source.width(), side_, jitter_, random, &boxes));
  const PixelTable* table = sample->view(0).table;
  sample->ResetViews(static_cast<int>(boxes.size()));
  for (int v = 0; v < sample->num_views(); ++v) {
    CropImage(source, boxes[v], &sample->view(v).image);
    sample->view(v).table = table;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPatchesFromTensor(const ConfigNode& entry,
                                                                    const BuildContext& context) {
  ImgPatchesFromTensorOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_ASSIGN_OR_RETURN(const int side, PatchesPerSide(entry, options.num_patches));
  return std::make_unique<ImgPatchesFromTensor>(side, static_cast<int>(options.patch_jitter));
}

std::unique_ptr<Options> MakeImgPatchesFromTensorOptions() { return std::make_unique<ImgPatchesFromTensorOptions>(); }

}  // namespace ssl
