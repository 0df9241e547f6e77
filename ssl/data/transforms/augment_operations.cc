// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/augment_operations.h"

#include <algorithm>
#include <utility>

#include "ssl/data/image/affine.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/draw_normal.h"
#include "ssl/data/transforms/photometric.h"

namespace ssl {

// What an operation works with.
struct AugmentContext {
  CounterRandom& random;
  TransformScratch& scratch;
  Image* image;
};

struct AugmentOperation {
  absl::string_view name;
  void (*apply)(double level, const AugmentContext& context);
};

namespace {

constexpr double kLargestLevel = 10.0;
constexpr uint8_t kFill = 128;  // where no pixel of the image lands

double WithRandomSign(double value, CounterRandom& random) { return random.Bernoulli(0.5) ? -value : value; }

AffineSampling DrawSampling(CounterRandom& random) {
  return random.Bernoulli(0.5) ? AffineSampling::kBicubic : AffineSampling::kBilinear;
}

void Move(const AffineMap& map, const AugmentContext& context) {
  TransformAffine(*context.image, map, DrawSampling(context.random), kFill, &context.scratch.image);
  std::swap(*context.image, context.scratch.image);
}

void Rotate(double level, const AugmentContext& context) {
  const double degrees = WithRandomSign(level / kLargestLevel * 30.0, context.random);
  RotateImage(*context.image, degrees, DrawSampling(context.random), kFill, &context.scratch.image);
  std::swap(*context.image, context.scratch.image);
}

void ShearX(double level, const AugmentContext& context) {
  Move({1, WithRandomSign(level / kLargestLevel * 0.3, context.random), 0, 0, 1, 0}, context);
}
void ShearY(double level, const AugmentContext& context) {
  Move({1, 0, 0, WithRandomSign(level / kLargestLevel * 0.3, context.random), 1, 0}, context);
}

double RelativeShift(double level, CounterRandom& random) {
  return WithRandomSign(level / kLargestLevel * 0.45, random);
}
void TranslateX(double level, const AugmentContext& context) {
  Move({1, 0, RelativeShift(level, context.random) * context.image->width(), 0, 1, 0}, context);
}
void TranslateY(double level, const AugmentContext& context) {
  Move({1, 0, 0, 0, 1, RelativeShift(level, context.random) * context.image->height()}, context);
}

void Contrast(double factor, const AugmentContext& context) { AdjustContrast(factor, context.image); }
void Color(double factor, const AugmentContext& context) { AdjustSaturation(factor, context.image); }
void Brightness(double factor, const AugmentContext& context) { AdjustBrightness(factor, context.image); }
void Sharpness(double factor, const AugmentContext& context) {
  AdjustSharpness(factor, &context.scratch.image, context.image);
}

// From 0.1, which takes most away, over 1, which changes nothing, to 1.9.
template <void (*kAdjust)(double, const AugmentContext&)>
void Enhance(double level, const AugmentContext& context) {
  kAdjust(level / kLargestLevel * 1.8 + 0.1, context);
}

// Away from 1 to either side.
template <void (*kAdjust)(double, const AugmentContext&)>
void EnhanceIncreasing(double level, const AugmentContext& context) {
  kAdjust(1.0 + WithRandomSign(level / kLargestLevel * 0.9, context.random), context);
}

int PosterizeBits(double level) { return static_cast<int>(level / kLargestLevel * 4); }
int SolarizeThreshold(double level) { return static_cast<int>(level / kLargestLevel * 256); }

// In the order of the names: VISSL's three scales of posterize are those of three published programs.
const AugmentOperation kOperations[] = {
    {"AutoContrast", [](double, const AugmentContext& context) { AutoContrast(context.image); }},
    {"Brightness", Enhance<Brightness>},
    {"BrightnessIncreasing", EnhanceIncreasing<Brightness>},
    {"Color", Enhance<Color>},
    {"ColorIncreasing", EnhanceIncreasing<Color>},
    {"Contrast", Enhance<Contrast>},
    {"ContrastIncreasing", EnhanceIncreasing<Contrast>},
    {"Equalize", [](double, const AugmentContext& context) { Equalize(context.image); }},
    {"Invert", [](double, const AugmentContext& context) { Invert(context.image); }},
    {"Posterize", [](double level, const AugmentContext& context) { Posterize(PosterizeBits(level), context.image); }},
    {"PosterizeIncreasing",
     [](double level, const AugmentContext& context) { Posterize(4 - PosterizeBits(level), context.image); }},
    {"PosterizeOriginal",
     [](double level, const AugmentContext& context) { Posterize(4 + PosterizeBits(level), context.image); }},
    {"Rotate", Rotate},
    {"Sharpness", Enhance<Sharpness>},
    {"SharpnessIncreasing", EnhanceIncreasing<Sharpness>},
    {"ShearX", ShearX},
    {"ShearY", ShearY},
    {"Solarize",
     [](double level, const AugmentContext& context) { Solarize(SolarizeThreshold(level), context.image); }},
    {"SolarizeAdd",
     [](double level, const AugmentContext& context) {
       SolarizeAdd(static_cast<int>(level / kLargestLevel * 110), context.image);
     }},
    {"SolarizeIncreasing",
     [](double level, const AugmentContext& context) { Solarize(256 - SolarizeThreshold(level), context.image); }},
    {"TranslateXRel", TranslateX},
    {"TranslateYRel", TranslateY},
};

}  // namespace

const AugmentOperation* FindAugmentOperation(absl::string_view name) {
  for (const AugmentOperation& operation : kOperations) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

void ApplyAugmentStep(const AugmentStep& step, CounterRandom& random, TransformScratch& scratch, Image* image) {
  if (!random.Bernoulli(step.probability)) return;
  double level = step.magnitude;
  if (step.magnitude_std > 0.0) level += step.magnitude_std * DrawNormal(random);
  step.operation->apply(std::clamp(level, 0.0, kLargestLevel), {random, scratch, image});
}

}  // namespace ssl
