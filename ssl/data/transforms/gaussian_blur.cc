// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

constexpr int kPasses = 3;
constexpr int kFractionBits = 24;
constexpr uint32_t kHalf = 1u << (kFractionBits - 1);

SSL_PIXEL_FUNCTION uint8_t BoxMean(uint32_t weight, uint32_t inner, uint32_t edge_weight, uint32_t edges) {
  return static_cast<uint8_t>((weight * inner + edge_weight * edges + kHalf) >> kFractionBits);
}

// BlendTaps for a radius that the compiler knows: everything stays in registers.
template <int kRadius>
SSL_PIXEL_FUNCTION void BlendFewTaps(const BlurBox& box, const uint8_t* const* taps, int64_t size,
                                     uint8_t* __restrict output) {
  constexpr int kLast = 2 * kRadius + 2;
  const uint8_t* tap[kLast + 1];
  for (int t = 0; t <= kLast; ++t) tap[t] = taps[t];
  const uint32_t weight = box.weight;
  const uint32_t edge_weight = box.edge_weight;
  for (int64_t i = 0; i < size; ++i) {
    int inner = 0;
    for (int t = 1; t < kLast; ++t) inner += tap[t][i];
    const int edges = tap[0][i] + tap[kLast][i];
    output[i] = BoxMean(weight, static_cast<uint16_t>(inner), edge_weight, static_cast<uint16_t>(edges));
  }
}

SSL_PIXEL_FUNCTION void BlendManyTaps(const BlurBox& box, const uint8_t* const* taps, int64_t size, uint32_t* sums,
                                      uint8_t* __restrict output) {
  const int last = 2 * box.radius + 2;
  const uint32_t weight = box.weight;
  const uint32_t edge_weight = box.edge_weight;
  for (int64_t i = 0; i < size; ++i) sums[i] = taps[1][i];
  for (int t = 2; t < last; ++t) {
    const uint8_t* tap = taps[t];
    for (int64_t i = 0; i < size; ++i) sums[i] += tap[i];
  }
  const uint8_t* first_tap = taps[0];
  const uint8_t* last_tap = taps[last];
  for (int64_t i = 0; i < size; ++i) {
    output[i] = BoxMean(weight, sums[i], edge_weight, static_cast<uint32_t>(first_tap[i]) + last_tap[i]);
  }
}

// output[i] is the box over taps[0][i], taps[1][i], ...: 2 * radius + 3 of them, `size` bytes each. A sigma of 2 has
// radius 1, of 3.4 radius 2.
SSL_VECTORIZE
void BlendTaps(const BlurBox& box, const uint8_t* const* taps, int64_t size, uint32_t* sums, uint8_t* output) {
  switch (box.radius) {
    case 0:
      return BlendFewTaps<0>(box, taps, size, output);
    case 1:
      return BlendFewTaps<1>(box, taps, size, output);
    case 2:
      return BlendFewTaps<2>(box, taps, size, output);
    default:
      return BlendManyTaps(box, taps, size, sums, output);
  }
}

// Repeats the first and the last pixel of a row in the `border` pixels before and after it.
void FillBorder(uint8_t* row, int width, int channels, int border) {
  const uint8_t* last = row + static_cast<int64_t>(width - 1) * channels;
  for (int i = 1; i <= border; ++i) {
    std::memcpy(row - i * channels, row, channels);
    std::memcpy(row + (width - 1 + i) * channels, last, channels);
  }
}

// All passes along the rows, one row after the other.
void BlurRows(const BlurBox& box, BlurBuffers* buffers, Image* image) {
  const int channels = image->channels();
  const int border = box.radius + 1;
  const int64_t row_size = static_cast<int64_t>(image->width()) * channels;
  const int64_t line_size = row_size + 2 * border * channels;
  buffers->line.resize(2 * line_size);
  uint8_t* input = buffers->line.data() + border * channels;
  uint8_t* output = input + line_size;
  uint8_t* row = image->MutablePixels();
  for (int y = 0; y < image->height(); ++y, row += row_size) {
    std::memcpy(input, row, row_size);
    for (int pass = 0; pass < kPasses; ++pass) {
      FillBorder(input, image->width(), channels, border);
      for (int t = 0; t <= 2 * border; ++t) buffers->taps[t] = input + (t - border) * channels;
      const bool is_last = pass == kPasses - 1;
      BlendTaps(box, buffers->taps.data(), row_size, buffers->sums.data(), is_last ? row : output);
      std::swap(input, output);
    }
  }
}

// One pass along the columns.
void BlurColumns(const BlurBox& box, BlurBuffers* buffers, const Image& image, uint8_t* output) {
  const int border = box.radius + 1;
  const int64_t row_size = static_cast<int64_t>(image.width()) * image.channels();
  for (int y = 0; y < image.height(); ++y, output += row_size) {
    for (int t = 0; t <= 2 * border; ++t) {
      buffers->taps[t] = image.row(std::clamp(y + t - border, 0, image.height() - 1));
    }
    BlendTaps(box, buffers->taps.data(), row_size, buffers->sums.data(), output);
  }
}

}  // namespace

// In float where Pillow computes in float.
BlurBox BlurBoxFor(float sigma) {
  const float variance = sigma * sigma / kPasses;
  const float length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const float whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  const float part =
      (2 * whole + 1) * (whole * (whole + 1) - 3 * variance) / (6 * (variance - (whole + 1) * (whole + 1)));
  const float radius = whole + part;
  BlurBox box;
  box.radius = static_cast<int>(radius);
  box.weight = static_cast<uint32_t>(static_cast<float>(1 << kFractionBits) / (radius * 2 + 1));
  box.edge_weight = ((1u << kFractionBits) - (2 * box.radius + 1) * box.weight) / 2;
  return box;
}

void GaussianBlur(float sigma, BlurBuffers* buffers, Image* image) {
  const BlurBox box = BlurBoxFor(sigma);
  buffers->taps.resize(2 * box.radius + 3);
  buffers->sums.resize(static_cast<size_t>(image->width()) * image->channels());
  BlurRows(box, buffers, image);
  for (int pass = 0; pass < kPasses; ++pass) {
    BlurColumns(box, buffers, *image, buffers->rows.Allocate(image->height(), image->width(), image->channels()));
    std::swap(*image, buffers->rows);
  }
}

}  // namespace ssl
