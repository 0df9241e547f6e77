// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/photometric.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

using Levels = std::array<uint8_t, 256>;

// Replaces the values of one channel.
void Replace(const Levels& levels, int channel, Image* image) {
  uint8_t* pixels = image->MutablePixels();
  const int64_t size = image->size_bytes();
  const int step = image->channels();
  for (int64_t i = channel; i < size; i += step) pixels[i] = levels[pixels[i]];
}

// The smallest and the largest value of a channel.
std::pair<int, int> RangeOf(const Image& image, int channel) {
  int lo = 255;
  int hi = 0;
  for (int64_t i = channel; i < image.size_bytes(); i += image.channels()) {
    lo = std::min<int>(lo, image.pixels()[i]);
    hi = std::max<int>(hi, image.pixels()[i]);
  }
  return {lo, hi};
}

std::array<int64_t, 256> CountLevels(const Image& image, int channel) {
  std::array<int64_t, 256> counts = {};
  for (int64_t i = channel; i < image.size_bytes(); i += image.channels()) ++counts[image.pixels()[i]];
  return counts;
}

SSL_VECTORIZE
void SolarizePixels(int threshold, uint8_t* pixels, int64_t size) {
  for (int64_t i = 0; i < size; ++i) pixels[i] = pixels[i] < threshold ? pixels[i] : 255 - pixels[i];
}

// The inner pixels of one row: `size` bytes whose neighbours are at distances of `channels` and `stride` bytes.
SSL_VECTORIZE
void SharpenRow(const uint8_t* input, int64_t size, int channels, int64_t stride, float factor, uint8_t* output) {
  const uint8_t* above = input - stride;
  const uint8_t* below = input + stride;
  for (int64_t i = 0; i < size; ++i) {
    const int sum = above[i - channels] + above[i] + above[i + channels] + input[i - channels] + 5 * input[i] +
                    input[i + channels] + below[i - channels] + below[i] + below[i + channels];
    const int smooth = (2 * sum + 13) / 26;
    const float sharp = static_cast<float>(smooth) + factor * static_cast<float>(input[i] - smooth);
    output[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(sharp), 0, 255));
  }
}

}  // namespace

void Solarize(int threshold, Image* image) { SolarizePixels(threshold, image->MutablePixels(), image->size_bytes()); }

void SolarizeAdd(int added, Image* image) {
  uint8_t* pixels = image->MutablePixels();
  const int64_t size = image->size_bytes();
  for (int64_t i = 0; i < size; ++i) {
    if (pixels[i] < 128) pixels[i] = static_cast<uint8_t>(std::min(pixels[i] + added, 255));
  }
}

void Invert(Image* image) {
  uint8_t* pixels = image->MutablePixels();
  const int64_t size = image->size_bytes();
  for (int64_t i = 0; i < size; ++i) pixels[i] = static_cast<uint8_t>(255 - pixels[i]);
}

void Posterize(int bits, Image* image) {
  const uint8_t mask = static_cast<uint8_t>(0xff << (8 - bits));
  uint8_t* pixels = image->MutablePixels();
  const int64_t size = image->size_bytes();
  for (int64_t i = 0; i < size; ++i) pixels[i] &= mask;
}

void AutoContrast(Image* image) {
  for (int channel = 0; channel < image->channels(); ++channel) {
    const auto [lo, hi] = RangeOf(*image, channel);
    if (hi <= lo) continue;
    const double scale = 255.0 / (hi - lo);
    const double offset = -lo * scale;
    Levels levels;
    for (int level = 0; level < 256; ++level) {
      levels[level] = static_cast<uint8_t>(std::clamp(static_cast<int>(level * scale + offset), 0, 255));
    }
    Replace(levels, channel, image);
  }
}

void Equalize(Image* image) {
  for (int channel = 0; channel < image->channels(); ++channel) {
    const std::array<int64_t, 256> counts = CountLevels(*image, channel);
    const auto [lo, hi] = RangeOf(*image, channel);
    // Pillow leaves the pixels of the highest level out, and rounds down: images of few pixels stay.
    const int64_t step = (static_cast<int64_t>(image->height()) * image->width() - counts[hi]) / 255;
    if (lo == hi || step == 0) continue;
    Levels levels;
    int64_t below = step / 2;
    for (int level = 0; level < 256; ++level) {
      levels[level] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
      below += counts[level];
    }
    Replace(levels, channel, image);
  }
}

void AdjustSharpness(double factor, Image* scratch, Image* image) {
  const int channels = image->channels();
  if (image->height() < 3 || image->width() < 3) return;
  const int64_t stride = static_cast<int64_t>(image->width()) * channels;
  uint8_t* output = scratch->Allocate(image->height(), image->width(), channels);
  std::copy(image->pixels(), image->pixels() + image->size_bytes(), output);
  for (int y = 1; y + 1 < image->height(); ++y) {
    SharpenRow(image->row(y) + channels, stride - 2 * channels, channels, stride, static_cast<float>(factor),
               output + y * stride + channels);
  }
  std::swap(*image, *scratch);
}

}  // namespace ssl
