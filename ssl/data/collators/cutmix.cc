// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/cutmix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ssl/data/collators/draw_beta.h"

namespace ssl {
namespace {

// A box around a random pixel, cut off where it leaves the image. As in timm an odd side loses a pixel.
CropBox DrawBox(double own_share, int height, int width, CounterRandom& random) {
  const double side = std::sqrt(1.0 - own_share);
  const int half_height = static_cast<int>(height * side) / 2;
  const int half_width = static_cast<int>(width * side) / 2;
  const int y = static_cast<int>(random.UniformInt(0, height - 1));
  const int x = static_cast<int>(random.UniformInt(0, width - 1));
  CropBox box;
  box.top = std::max(y - half_height, 0);
  box.left = std::max(x - half_width, 0);
  box.height = std::min(y + half_height, height) - box.top;
  box.width = std::min(x + half_width, width) - box.left;
  return box;
}

int DrawSide(const std::vector<double>& min_max, int side, CounterRandom& random) {
  return static_cast<int>(
      random.UniformInt(static_cast<int64_t>(side * min_max[0]), static_cast<int64_t>(side * min_max[1]) - 1));
}

CropBox DrawBoxWithin(const std::vector<double>& min_max, int height, int width, CounterRandom& random) {
  CropBox box;
  box.height = DrawSide(min_max, height, random);
  box.width = DrawSide(min_max, width, random);
  box.top = static_cast<int>(random.UniformInt(0, height - box.height - 1));
  box.left = static_cast<int>(random.UniformInt(0, width - box.width - 1));
  return box;
}

// `row`, `width` pixels that belong to row y of an image, takes its part of `other`.
void MixLine(const Mixture& mixture, int y, int64_t width, int channels, const float* other, float* row) {
  if (mixture.cut) {
    const CropBox& box = mixture.box;
    if (y < box.top || y >= box.top + box.height) return;
    const float* first = other + static_cast<int64_t>(box.left) * channels;
    std::copy(first, first + static_cast<int64_t>(box.width) * channels,
              row + static_cast<int64_t>(box.left) * channels);
  } else if (mixture.own_share != 1.0) {
    const auto own = static_cast<float>(mixture.own_share);
    const auto taken = static_cast<float>(1.0 - mixture.own_share);
    for (int64_t i = 0; i < width * channels; ++i) row[i] = row[i] * own + other[i] * taken;
  }
}

}  // namespace

Mixture DrawMixture(const CutMixRule& rule, int height, int width, CounterRandom& random) {
  Mixture mixture;
  if (!random.Bernoulli(rule.probability)) return mixture;
  const bool both = rule.mixup_alpha > 0.0 && rule.cutmix_alpha > 0.0;
  const bool cut = both ? random.Bernoulli(rule.switch_probability) : rule.cutmix_alpha > 0.0;
  mixture.own_share = DrawBeta(cut ? rule.cutmix_alpha : rule.mixup_alpha, random);
  if (!cut || mixture.own_share == 1.0) return mixture;
  mixture.cut = true;
  mixture.box = rule.min_max.empty() ? DrawBox(mixture.own_share, height, width, random)
                                     : DrawBoxWithin(rule.min_max, height, width, random);
  if (rule.correct_share || !rule.min_max.empty()) {
    const double area = static_cast<double>(mixture.box.height) * mixture.box.width;
    mixture.own_share = 1.0 - area / (static_cast<double>(height) * width);
  }
  return mixture;
}

void MixWithFlipped(const BatchRows::View& view, absl::Span<const Mixture> mixtures) {
  const auto rows = static_cast<int64_t>(mixtures.size());
  const int64_t line = static_cast<int64_t>(view.width) * view.channels;
  std::vector<float> unmixed(line);
  for (int64_t a = 0; a < rows / 2; ++a) {
    const int64_t b = rows - 1 - a;
    // Line by line: the copy stays in the cache, and either row finds the other as it was.
    for (int y = 0; y < view.height; ++y) {
      float* line_a = view.row(a) + y * line;
      float* line_b = view.row(b) + y * line;
      std::copy(line_a, line_a + line, unmixed.begin());
      MixLine(mixtures[a], y, view.width, view.channels, line_b, line_a);
      MixLine(mixtures[b], y, view.width, view.channels, unmixed.data(), line_b);
    }
  }
}

}  // namespace ssl
