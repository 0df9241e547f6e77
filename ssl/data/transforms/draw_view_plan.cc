// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/draw_view_plan.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/gaussian_blur.h"

namespace ssl {
namespace {

absl::Status AddStep(const PixelStep& step, ViewPlan* plan) {
  if (plan->num_steps == ViewPlan::kMostSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("a view has more than ", ViewPlan::kMostSteps, " steps after its crop, expected at most so many"));
  }
  plan->steps[plan->num_steps++] = step;
  return absl::OkStatus();
}

PixelStep StepOf(const ColorStep& color) {
  PixelStep step;
  step.factor = ColorFactor(color);
  switch (color.adjustment) {
    case ColorAdjustment::kBrightness:
      step.kind = PixelStepKind::kBrightness;
      break;
    case ColorAdjustment::kContrast:
      step.kind = PixelStepKind::kContrast;
      break;
    case ColorAdjustment::kSaturation:
      step.kind = PixelStepKind::kSaturation;
      break;
    case ColorAdjustment::kHue:
      step.kind = PixelStepKind::kHue;
      step.amount = HueSteps(color);
      break;
  }
  return step;
}

}  // namespace

void DrawCropPlan(CounterRandom* random, const RandomCropRule& rule, const Image& image, ViewPlan* plan) {
  const CropBox box = DrawCropBox(*random, image.full_height(), image.full_width(), rule.scale, rule.ratio);
  const int reduction = image.reduction();
  const CropBox read = ReducedBox(box, reduction);
  plan->source_channels = image.channels();
  plan->source_stride = static_cast<int64_t>(image.width()) * image.channels();
  plan->source_begin = read.top * plan->source_stride + static_cast<int64_t>(read.left) * image.channels();
  plan->rows = {read.height, rule.height, box.top % reduction, box.height, reduction};
  plan->columns = {read.width, rule.width, box.left % reduction, box.width, reduction};
  plan->bicubic = rule.interpolation == Interpolation::kBicubic;
  plan->rows_first = HeightFirst(read, rule.height, rule.width);
}

void DrawFlipPlan(CounterRandom* random, double probability, ViewPlan* plan) {
  if (random->Bernoulli(probability)) plan->flipped = !plan->flipped;
}

absl::Status PlanColorSteps(absl::Span<const ColorStep> steps, ViewPlan* plan) {
  for (const ColorStep& step : steps) SSL_RETURN_IF_ERROR(AddStep(StepOf(step), plan));
  return absl::OkStatus();
}

absl::Status DrawGreyPlan(CounterRandom* random, double probability, ViewPlan* plan) {
  if (!random->Bernoulli(probability)) return absl::OkStatus();
  PixelStep step;
  step.kind = PixelStepKind::kGrey;
  return AddStep(step, plan);
}

absl::Status DrawBlurPlan(CounterRandom* random, double probability, const Interval& radius, ViewPlan* plan) {
  if (!random->Bernoulli(probability)) return absl::OkStatus();
  const BlurBox box = BlurBoxFor(static_cast<float>(random->Uniform(radius.lo, radius.hi)));
  PixelStep step;
  step.kind = PixelStepKind::kBlur;
  step.amount = box.radius;
  step.weight = box.weight;
  step.edge_weight = box.edge_weight;
  return AddStep(step, plan);
}

absl::Status DrawSolarizePlan(CounterRandom* random, double probability, ViewPlan* plan) {
  if (!random->Bernoulli(probability)) return absl::OkStatus();
  PixelStep step;
  step.kind = PixelStepKind::kSolarize;
  step.amount = static_cast<int32_t>(random->UniformInt(0, 256));
  return AddStep(step, plan);
}

}  // namespace ssl
