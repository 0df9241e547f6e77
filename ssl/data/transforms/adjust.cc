// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/adjust.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ssl/data/transforms/color_planes.h"
#include "ssl/data/transforms/hue_avx512.h"

namespace ssl {
namespace {

// Beyond it a difference of one level fills the range, so that larger factors change nothing.
constexpr double kLargestFactor = 1e4;

int64_t PixelCount(const Image& image) { return static_cast<int64_t>(image.height()) * image.width(); }

int ChunkAt(int64_t pixel, int64_t count) {
  return static_cast<int>(std::min<int64_t>(count - pixel, ColorPlanes::kPixels));
}

int RoundedMean(uint64_t sum, const Image& image) {
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(PixelCount(image)) + 0.5);
}

// mean_grey: of the image, before a contrast among the steps.
void ApplyStep(const ColorStep& step, int mean_grey, ColorPlanes* planes) {
  switch (step.adjustment) {
    case ColorAdjustment::kBrightness:
      return BlendWithLevel(0, ColorFactor(step), planes);
    case ColorAdjustment::kContrast:
      return BlendWithLevel(mean_grey, ColorFactor(step), planes);
    case ColorAdjustment::kSaturation:
      return BlendWithGrey(ColorFactor(step), planes);
    case ColorAdjustment::kHue:
      const int hues = HueSteps(step);
      if (!TurnHuesByAvx512(hues, planes)) TurnHues(hues, planes);
      return;
  }
}

// What one pass over an image does.
struct Pass {
  absl::Span<const ColorStep> steps;
  int mean_grey = 0;
  bool sums_greys = false;  // of the result
};

uint64_t RunPass(const Pass& pass, Image* image) {
  ColorPlanes planes;
  uint64_t sum = 0;
  const int64_t count = PixelCount(*image);
  uint8_t* pixels = image->MutablePixels();
  for (int64_t first = 0; first < count; first += ColorPlanes::kPixels) {
    ReadPlanes(pixels + 3 * first, ChunkAt(first, count), &planes);
    for (const ColorStep& step : pass.steps) ApplyStep(step, pass.mean_grey, &planes);
    if (pass.sums_greys) sum += SumOfGreys(planes);
    if (!pass.steps.empty()) WritePlanes(planes, pixels + 3 * first);
  }
  return sum;
}

// A contrast needs the mean of all pixels as the steps before it leave them: a pass begins there.
void AdjustColorImage(absl::Span<const ColorStep> steps, Image* image) {
  const auto is_contrast = [](const ColorStep& step) { return step.adjustment == ColorAdjustment::kContrast; };
  int mean_grey = 0;
  auto begin = steps.begin();
  auto next = std::find_if(begin, steps.end(), is_contrast);
  while (true) {
    const bool contrast_follows = next != steps.end();
    const absl::Span<const ColorStep> part(begin, next - begin);
    if (!part.empty() || contrast_follows) {
      const uint64_t sum = RunPass({part, mean_grey, contrast_follows}, image);
      if (contrast_follows) mean_grey = RoundedMean(sum, *image);
    }
    if (!contrast_follows) return;
    begin = next;
    next = std::find_if(begin + 1, steps.end(), is_contrast);
  }
}

void AdjustGreyImage(absl::Span<const ColorStep> steps, Image* image) {
  for (const ColorStep& step : steps) {
    int level = 0;
    if (step.adjustment == ColorAdjustment::kContrast) {
      level = RoundedMean(SumOf(image->pixels(), image->size_bytes()), *image);
    } else if (step.adjustment != ColorAdjustment::kBrightness) {
      continue;
    }
    BlendWithLevel(level, ColorFactor(step), image->MutablePixels(), image->size_bytes());
  }
}

}  // namespace

float ColorFactor(const ColorStep& step) { return static_cast<float>(std::min(step.value, kLargestFactor)); }

int HueSteps(const ColorStep& step) { return static_cast<int>(step.value * 255); }

void AdjustColors(absl::Span<const ColorStep> steps, Image* image) {
  return image->channels() == 1 ? AdjustGreyImage(steps, image) : AdjustColorImage(steps, image);
}

void AdjustBrightness(double factor, Image* image) { AdjustColors({{ColorAdjustment::kBrightness, factor}}, image); }

void AdjustContrast(double factor, Image* image) { AdjustColors({{ColorAdjustment::kContrast, factor}}, image); }

void AdjustSaturation(double factor, Image* image) { AdjustColors({{ColorAdjustment::kSaturation, factor}}, image); }

void AdjustHue(double part, Image* image) { AdjustColors({{ColorAdjustment::kHue, part}}, image); }

void ConvertToGrey(const Image& source, Image* grey) {
  if (source.channels() == 1) {
    grey->CopyFrom(source);
    return;
  }
  const int64_t count = PixelCount(source);
  uint8_t* greys = grey->Allocate(source.height(), source.width(), 1);
  ColorPlanes planes;
  for (int64_t first = 0; first < count; first += ColorPlanes::kPixels) {
    ReadPlanes(source.pixels() + 3 * first, ChunkAt(first, count), &planes);
    WriteGreys(planes, greys + first);
  }
}

void ReduceToGrey(Image* scratch, Image* image) {
  if (image->channels() == 1) return;
  ConvertToGrey(*image, scratch);
  std::swap(*image, *scratch);
}

}  // namespace ssl
