// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/color_jitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ColorJitterOptions : public Options {
  ConfigNode brightness = ConfigNode::FromInt(0);
  ConfigNode contrast = ConfigNode::FromInt(0);
  ConfigNode saturation = ConfigNode::FromInt(0);
  ConfigNode hue = ConfigNode::FromInt(0);
  double p = 1.0;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("brightness", &brightness, Doc("Strength, or [smallest, largest] factor."));
    visitor.Field("contrast", &contrast, Doc("Strength, or [smallest, largest] factor."));
    visitor.Field("saturation", &saturation, Doc("Strength, or [smallest, largest] factor."));
    visitor.Field("hue", &hue, Doc("Strength, or [smallest, largest] part of the colour wheel."));
    visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0));
  }
};

// One of the four, and the values that it may be called with.
struct Adjustment {
  ColorAdjustment adjustment;
  Interval values;
  double neutral;
};

Interval FactorsOf(double strength) { return {std::max(0.0, 1.0 - strength), 1.0 + strength}; }

// A strength at least 0 or a list of two numbers; an empty interval otherwise.
template <typename IntervalOfStrength>
Interval ReadInterval(const ConfigNode& value, const IntervalOfStrength& interval_of) {
  constexpr Interval kEmpty = {1.0, -1.0};
  if (value.is_list() && value.items().size() == 2) {
    const absl::StatusOr<double> lo = value.items()[0].AsDouble();
    const absl::StatusOr<double> hi = value.items()[1].AsDouble();
    return lo.ok() && hi.ok() ? Interval{*lo, *hi} : kEmpty;
  }
  const absl::StatusOr<double> strength = value.AsDouble();
  return strength.ok() && *strength >= 0.0 ? interval_of(*strength) : kEmpty;
}

absl::StatusOr<Interval> ReadFactors(const ConfigNode& entry, absl::string_view key, const ConfigNode& value) {
  const Interval factors = ReadInterval(value, FactorsOf);
  if (factors.lo >= 0.0 && factors.lo <= factors.hi) return factors;
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is ", value.Describe(),
                                                 ", expected a number of at least 0 or two increasing ones"));
}

absl::StatusOr<Interval> ReadHue(const ConfigNode& entry, const ConfigNode& value) {
  const Interval parts = ReadInterval(value, [](double strength) { return Interval{-strength, strength}; });
  if (parts.lo >= -0.5 && parts.lo <= parts.hi && parts.hi <= 0.5) return parts;
  return absl::InvalidArgumentError(
      absl::StrCat(TransformKey(entry, "hue"), " is ", value.Describe(),
                   ", expected a number in [0, 0.5] or two increasing ones in [-0.5, 0.5]"));
}

}  // namespace

absl::Span<const ColorStep> DrawColorSteps(const ColorJitter::Strength& strength, CounterRandom* random,
                                           std::array<ColorStep, 4>* steps) {
  if (!random->Bernoulli(strength.probability)) return {};
  std::array<Adjustment, 4> adjustments = {{{ColorAdjustment::kBrightness, strength.brightness, 1.0},
                                            {ColorAdjustment::kContrast, strength.contrast, 1.0},
                                            {ColorAdjustment::kSaturation, strength.saturation, 1.0},
                                            {ColorAdjustment::kHue, strength.hue, 0.0}}};
  const auto end = std::remove_if(adjustments.begin(), adjustments.end(), [](const Adjustment& adjustment) {
    return adjustment.values.lo == adjustment.neutral && adjustment.values.hi == adjustment.neutral;
  });
  auto step = steps->begin();
  for (auto next = adjustments.begin(); next != end; ++next, ++step) {
    std::swap(*next, *(next + random->UniformInt(0, end - next - 1)));
    *step = {next->adjustment, random->Uniform(next->values.lo, next->values.hi)};
  }
  return absl::MakeConstSpan(steps->data(), step - steps->begin());
}

void JitterColors(const ColorJitter::Strength& strength, CounterRandom* random, Image* image) {
  std::array<ColorStep, 4> steps;
  AdjustColors(DrawColorSteps(strength, random, &steps), image);
}

absl::Status DrawColorPlan(const ColorJitter::Strength& strength, CounterRandom* random, ViewPlan* plan) {
  std::array<ColorStep, 4> steps;
  return PlanColorSteps(DrawColorSteps(strength, random, &steps), plan);
}

ColorJitter::Strength ScaledColorJitter(double strength, double probability) {
  const Interval factors = FactorsOf(0.8 * strength);
  return {factors, factors, factors, {-0.2 * strength, 0.2 * strength}, probability};
}

absl::Status ColorJitter::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  JitterColors(strength_, &random, &view->image);
  return absl::OkStatus();
}

absl::Status ColorJitter::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawColorPlan(strength_, &random, plan);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeColorJitter(const ConfigNode& entry, const BuildContext& context) {
  ColorJitterOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  ColorJitter::Strength strength;
  SSL_ASSIGN_OR_RETURN(strength.brightness, ReadFactors(entry, "brightness", options.brightness));
  SSL_ASSIGN_OR_RETURN(strength.contrast, ReadFactors(entry, "contrast", options.contrast));
  SSL_ASSIGN_OR_RETURN(strength.saturation, ReadFactors(entry, "saturation", options.saturation));
  SSL_ASSIGN_OR_RETURN(strength.hue, ReadHue(entry, options.hue));
  strength.probability = options.p;
  return std::make_unique<ColorJitter>(strength);
}

std::unique_ptr<Options> MakeColorJitterOptions() { return std::make_unique<ColorJitterOptions>(); }

}  // namespace ssl
