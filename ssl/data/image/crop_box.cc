// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/crop_box.h"

#include <algorithm>
#include <cmath>

namespace ssl {
namespace {

constexpr int kTries = 10;

// Half to even, as Python's round.
int RoundToInt(double value) { return static_cast<int>(std::nearbyint(value)); }

// The largest box in the middle whose aspect ratio lies in `ratio`.
CropBox CentredBox(int height, int width, const Interval& ratio) {
  CropBox box;
  box.height = height;
  box.width = width;
  const double image_ratio = static_cast<double>(width) / height;
  if (image_ratio < ratio.lo) box.height = std::clamp(RoundToInt(width / ratio.lo), 1, height);
  if (image_ratio > ratio.hi) box.width = std::clamp(RoundToInt(height * ratio.hi), 1, width);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

CropBox Union(const CropBox& a, const CropBox& b) {
  const int top = std::min(a.top, b.top);
  const int left = std::min(a.left, b.left);
  return {top, left, std::max(a.top + a.height, b.top + b.height) - top,
          std::max(a.left + a.width, b.left + b.width) - left};
}

CropBox ReducedBox(const CropBox& box, int reduction) {
  const int top = box.top / reduction, left = box.left / reduction;
  return {top, left, (box.top + box.height + reduction - 1) / reduction - top,
          (box.left + box.width + reduction - 1) / reduction - left};
}

CropBox DrawCropBox(CounterRandom& random, int height, int width, const Interval& scale, const Interval& ratio) {
  const double image_area = static_cast<double>(height) * width;
  const double log_lo = std::log(ratio.lo);
  const double log_hi = std::log(ratio.hi);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double area = image_area * random.Uniform(scale.lo, scale.hi);
    const double aspect = std::exp(random.Uniform(log_lo, log_hi));
    const double ideal_width = std::sqrt(area * aspect);
    const double ideal_height = std::sqrt(area / aspect);
    // Compared before the conversion: an extreme ratio may not fit an int.
    if (ideal_width > width + 1.0 || ideal_height > height + 1.0) continue;
    CropBox box;
    box.width = RoundToInt(ideal_width);
    box.height = RoundToInt(ideal_height);
    if (box.width < 1 || box.width > width || box.height < 1 || box.height > height) continue;
    box.top = static_cast<int>(random.UniformInt(0, height - box.height));
    box.left = static_cast<int>(random.UniformInt(0, width - box.width));
    return box;
  }
  return CentredBox(height, width, ratio);
}

}  // namespace ssl
