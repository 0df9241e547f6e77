// SPDX-License-Identifier: Apache-2.0
//
// The two passes of a resampling filter over 8-bit rows, in fixed point: each value is a sum of weighted neighbours,
// rounded and cut to 0 ... 255. Pure functions but for the buffer that FilterWidth is given.
#ifndef SSL_DATA_IMAGE_RESAMPLE_PASSES_H_
#define SSL_DATA_IMAGE_RESAMPLE_PASSES_H_

#include <cstdint>
#include <vector>

namespace ssl {

// Weights are fixed-point numbers with 22 bits behind the point, Pillow's choice (PRECISION_BITS in Resample.c): the
// weights of a pixel add up to 1, those of a cubic to at most 1.25 by absolute value, so that 8-bit pixels times
// weights add up to less than 2^31, whatever the number of taps. All of this is part of the result, pixel for pixel,
// and may not be "improved".
constexpr int kWeightBits = 32 - 8 - 2;

// Rows of bytes, `stride` bytes apart.
struct PixelRows {
  const uint8_t* first = nullptr;
  int64_t stride = 0;
};

// Output position x is the sum of weights[x * taps + t] * input[first[x] + t] over t < taps.
struct FilterTaps {
  int in = 0;
  int out = 0;
  int taps = 0;
  const int* first = nullptr;        // out of them; first[x] + taps <= in
  const int32_t* weights = nullptr;  // out * taps of them
};

// The horizontal pass over `height` rows of filter.in pixels; result: rows of filter.out pixels without gaps. channels:
// any. buffer: overwritten; it keeps its size, so that a reused one allocates nothing.
void FilterWidth(PixelRows source, int height, int channels, const FilterTaps& filter, std::vector<uint8_t>* buffer,
                 uint8_t* result);

// The vertical pass over filter.in rows of row_size bytes; result: filter.out rows without gaps.
void FilterHeight(PixelRows source, int64_t row_size, const FilterTaps& filter, uint8_t* result);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_RESAMPLE_PASSES_H_
