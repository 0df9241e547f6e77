// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_rotate_pil.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/affine.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgRotatePilOptions : public Options {
  int64_t num_angles = 4;
  int64_t num_rotations_per_img = 1;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_angles", &num_angles, Doc("Angles, equally spaced from 0.").Between(1, 1 << 16));
    visitor.Field("num_rotations_per_img", &num_rotations_per_img, Doc("1, as in VISSL.").Between(1, 1));
  }
};

// In float32, as torch.linspace has it.
double DegreesOf(int64_t label, int num_angles) {
  const float step = 360.0f / static_cast<float>(num_angles);
  if (label < (num_angles + 1) / 2) return step * static_cast<float>(label);
  return 360.0f - step * static_cast<float>(num_angles - label);
}

}  // namespace

absl::Status ImgRotatePil::Apply(const TransformContext& context, Sample* sample) const {
  if (sample->num_views() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels one image with its angle, but gets ", sample->num_views(), " views; expected 1"));
  }
  View* view = &sample->view(0);
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ApplyFlip(view);
  CounterRandom random = context.Random(0);
  const int64_t label = random.UniformInt(0, num_angles_ - 1);
  RotateImage(view->image, DegreesOf(label, num_angles_), AffineSampling::kNearest, 0, &context.scratch.image);
  std::swap(view->image, context.scratch.image);
  sample->SetLabel(label);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgRotatePil(const ConfigNode& entry, const BuildContext& context) {
  ImgRotatePilOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgRotatePil>(static_cast<int>(options.num_angles));
}

std::unique_ptr<Options> MakeImgRotatePilOptions() { return std::make_unique<ImgRotatePilOptions>(); }

}  // namespace ssl
