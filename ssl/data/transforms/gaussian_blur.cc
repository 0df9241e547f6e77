// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "ssl/data/image/vectorize.h"
#include "ssl/data/transforms/blur_avx512.h"

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

// The taps of the widest box that is added up anew for each pixel; a wider one carries its sum along.
constexpr int kMostRadiusOfTaps = 2;
constexpr int kMostTaps = 2 * kMostRadiusOfTaps + 3;

// output[i] is the box over taps[0][i], taps[1][i], ...: 2 * radius + 3 of them, `size` bytes each. A sigma of 2 has
// radius 1, of 3.4 radius 2.
SSL_VECTORIZE
void BlendTapsByLoops(const BlurBox& box, const uint8_t* const* taps, int64_t size, uint8_t* output) {
  switch (box.radius) {
    case 0:
      return BlendFewTaps<0>(box, taps, size, output);
    case 1:
      return BlendFewTaps<1>(box, taps, size, output);
    default:
      return BlendFewTaps<kMostRadiusOfTaps>(box, taps, size, output);
  }
}

void BlendTaps(const BlurBox& box, const uint8_t* const* taps, int64_t size, uint8_t* output) {
  if (BlendTapsByAvx512(box.radius, box.weight, box.edge_weight, taps, size, output)) return;
  BlendTapsByLoops(box, taps, size, output);
}

// sums[i] is that of the inner pixels of a box along a row of `size` bytes that has its border on both sides.
void SumAlongRow(const uint8_t* input, int64_t size, int channels, int radius, uint32_t* sums) {
  const int64_t inner = static_cast<int64_t>(radius) * channels;
  for (int64_t channel = 0; channel < channels; ++channel) {
    uint32_t sum = 0;
    for (int64_t i = channel - inner; i <= channel + inner; i += channels) sum += input[i];
    for (int64_t i = channel; i < size; i += channels) {
      sums[i] = sum;
      sum += input[i + inner + channels] - input[i - inner];
    }
  }
}

// output[i] is the box of the inner pixels' sum and the two outer ones.
SSL_VECTORIZE
void BlendSums(const BlurBox& box, const uint32_t* sums, const uint8_t* before, const uint8_t* after, int64_t size,
               uint8_t* __restrict output) {
  const uint32_t weight = box.weight;
  const uint32_t edge_weight = box.edge_weight;
  for (int64_t i = 0; i < size; ++i) {
    output[i] = BoxMean(weight, sums[i], edge_weight, static_cast<uint32_t>(before[i]) + after[i]);
  }
}

SSL_VECTORIZE
void AddRow(const uint8_t* row, int64_t size, uint32_t* __restrict sums) {
  for (int64_t i = 0; i < size; ++i) sums[i] += row[i];
}

SSL_VECTORIZE
void SubtractRow(const uint8_t* row, int64_t size, uint32_t* __restrict sums) {
  for (int64_t i = 0; i < size; ++i) sums[i] -= row[i];
}

// Repeats the first and the last pixel of a row in the `border` pixels before and after it.
void FillBorder(uint8_t* row, int width, int channels, int border) {
  const uint8_t* last = row + static_cast<int64_t>(width - 1) * channels;
  for (int i = 1; i <= border; ++i) {
    std::memcpy(row - i * channels, row, channels);
    std::memcpy(row + (width - 1 + i) * channels, last, channels);
  }
}

// One pass along a row that has its border.
void BlurLine(const BlurBox& box, const uint8_t* input, int64_t size, int channels, std::vector<uint32_t>* sums,
              uint8_t* output) {
  const int64_t border = static_cast<int64_t>(box.radius + 1) * channels;
  if (box.radius > kMostRadiusOfTaps) {
    sums->resize(size);
    SumAlongRow(input, size, channels, box.radius, sums->data());
    return BlendSums(box, sums->data(), input - border, input + border, size, output);
  }
  const uint8_t* taps[kMostTaps];
  for (int t = 0; t < 2 * box.radius + 3; ++t) taps[t] = input - border + t * channels;
  BlendTaps(box, taps, size, output);
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
      const bool is_last = pass == kPasses - 1;
      BlurLine(box, input, row_size, channels, &buffers->sums, is_last ? row : output);
      std::swap(input, output);
    }
  }
}

// Beyond an edge its row is repeated.
const uint8_t* RowAt(const Image& image, int y) { return image.row(std::clamp(y, 0, image.height() - 1)); }

// One pass along the columns.
void BlurColumns(const BlurBox& box, const Image& image, uint8_t* output) {
  const uint8_t* taps[kMostTaps];
  const int border = box.radius + 1;
  const int64_t row_size = static_cast<int64_t>(image.width()) * image.channels();
  for (int y = 0; y < image.height(); ++y, output += row_size) {
    for (int t = 0; t <= 2 * border; ++t) taps[t] = RowAt(image, y + t - border);
    BlendTaps(box, taps, row_size, output);
  }
}

// The same for a box of any radius.
void BlurColumnsByCarrying(const BlurBox& box, std::vector<uint32_t>* sums, const Image& image, uint8_t* output) {
  const int64_t row_size = static_cast<int64_t>(image.width()) * image.channels();
  sums->assign(row_size, 0);
  for (int y = -box.radius; y <= box.radius; ++y) AddRow(RowAt(image, y), row_size, sums->data());
  for (int y = 0; y < image.height(); ++y, output += row_size) {
    const uint8_t* entering = RowAt(image, y + box.radius + 1);
    BlendSums(box, sums->data(), RowAt(image, y - box.radius - 1), entering, row_size, output);
    AddRow(entering, row_size, sums->data());
    SubtractRow(RowAt(image, y - box.radius), row_size, sums->data());
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
  BlurRows(box, buffers, image);
  for (int pass = 0; pass < kPasses; ++pass) {
    uint8_t* output = buffers->rows.Allocate(image->height(), image->width(), image->channels());
    if (box.radius > kMostRadiusOfTaps) {
      BlurColumnsByCarrying(box, &buffers->sums, *image, output);
    } else {
      BlurColumns(box, *image, output);
    }
    std::swap(*image, buffers->rows);
  }
}

}  // namespace ssl
