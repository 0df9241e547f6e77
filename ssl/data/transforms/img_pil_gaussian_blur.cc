// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_gaussian_blur.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/gaussian_blur.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilGaussianBlurOptions : public Options {
  double p = 0.5;
  double radius_min = 0.1;
  double radius_max = 2.0;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0));
    visitor.Field("radius_min", &radius_min, Doc("Smallest standard deviation.").Between(0.0, 1000.0).Unit("pixels"));
    visitor.Field("radius_max", &radius_max, Doc("Largest standard deviation.").Between(0.0, 1000.0).Unit("pixels"));
  }
};

}  // namespace

absl::Status ImgPilGaussianBlur::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  if (!random.Bernoulli(probability_)) return absl::OkStatus();
  GaussianBlur(static_cast<float>(random.Uniform(radius_.lo, radius_.hi)), &context.scratch.Get<BlurBuffers>(),
               &view->image);
  return absl::OkStatus();
}

absl::Status ImgPilGaussianBlur::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawBlurPlan(&random, probability_, radius_, plan);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilGaussianBlur(const ConfigNode& entry,
                                                                  const BuildContext& context) {
  ImgPilGaussianBlurOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  if (options.radius_min > options.radius_max) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "radius_min"), " is ", options.radius_min,
                                                   ", expected at most ", options.radius_max, " as radius_max"));
  }
  return std::make_unique<ImgPilGaussianBlur>(options.p, Interval{options.radius_min, options.radius_max});
}

std::unique_ptr<Options> MakeImgPilGaussianBlurOptions() { return std::make_unique<ImgPilGaussianBlurOptions>(); }

}  // namespace ssl
