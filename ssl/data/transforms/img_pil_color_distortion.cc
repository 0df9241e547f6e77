// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_color_distortion.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

constexpr double kGreyProbability = 0.2;

void VisitStrength(FieldVisitor& visitor, double* strength) {
  // Hue turns by at most half of the wheel.
  visitor.Field("strength", strength, Doc("Scales all adjustments.").Between(0.0, 2.5));
}

struct ColorDistortionOptions : public Options {
  double strength = 1.0;

  void VisitFields(FieldVisitor& visitor) override { VisitStrength(visitor, &strength); }
};

struct RandomColorJitterOptions : public Options {
  double strength = 1.0;
  double p = 0.8;

  void VisitFields(FieldVisitor& visitor) override {
    VisitStrength(visitor, &strength);
    visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0));
  }
};

}  // namespace

absl::Status ImgPilColorDistortion::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  JitterColors(jitter_, &random, &view->image);
  if (random.Bernoulli(kGreyProbability)) ReduceToGrey(&context.scratch.image, &view->image);
  return absl::OkStatus();
}

absl::Status ImgPilColorDistortion::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  SSL_RETURN_IF_ERROR(DrawColorPlan(jitter_, &random, plan));
  return DrawGreyPlan(&random, kGreyProbability, plan);
}

absl::Status ImgPilRandomColorJitter::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  JitterColors(jitter_, &random, &view->image);
  return absl::OkStatus();
}

absl::Status ImgPilRandomColorJitter::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawColorPlan(jitter_, &random, plan);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilColorDistortion(const ConfigNode& entry,
                                                                     const BuildContext& context) {
  ColorDistortionOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPilColorDistortion>(options.strength);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomColorJitter(const ConfigNode& entry,
                                                                       const BuildContext& context) {
  RandomColorJitterOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPilRandomColorJitter>(options.strength, options.p);
}

std::unique_ptr<Options> MakeImgPilColorDistortionOptions() { return std::make_unique<ColorDistortionOptions>(); }

std::unique_ptr<Options> MakeImgPilRandomColorJitterOptions() { return std::make_unique<RandomColorJitterOptions>(); }

}  // namespace ssl
