// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_random_photometric.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/photometric.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilRandomPhotometricOptions : public Options {
  double p = 0.66;

  void VisitFields(FieldVisitor& visitor) override { visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0)); }
};

}  // namespace

absl::Status ImgPilRandomPhotometric::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  if (!random.Bernoulli(probability_)) return absl::OkStatus();
  Image* image = &view->image;
  Posterize(static_cast<int>(random.UniformInt(4, 8)), image);
  AdjustSharpness(random.Uniform(0.1, 1.9), &context.scratch.image, image);
  Solarize(static_cast<int>(random.UniformInt(0, 256)), image);
  AutoContrast(image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomPhotometric(const ConfigNode& entry,
                                                                       const BuildContext& context) {
  ImgPilRandomPhotometricOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPilRandomPhotometric>(options.p);
}

std::unique_ptr<Options> MakeImgPilRandomPhotometricOptions() {
  return std::make_unique<ImgPilRandomPhotometricOptions>();
}

}  // namespace ssl
