// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows of channels that batch norm with ReLU and max pooling are made of, on plain float arrays.
//
// x, y, ... are [rows, channels] row-major; s[c] and the like are per channel. Each function makes one pass, and is
// compiled for AVX-512, AVX2 and any x86; the machine picks. Thread-safe.
#ifndef SSL_MODELS_CHANNEL_KERNELS_H_
#define SSL_MODELS_CHANNEL_KERNELS_H_

#include <cstdint>

namespace ssl {

// bfloat16 values, as their bits.
void WidenBfloat16(const uint16_t* values, int64_t count, float* out);
// Rounds to nearest even; NaN stays NaN.
void NarrowToBfloat16(const float* values, int64_t count, uint16_t* out);

// sum[c] += x - shift[c], squares[c] += (x - shift[c])^2.
void AddMoments(const float* x, int64_t rows, int64_t channels, const float* shift, float* sum, float* squares);

// y = max(0, x * scale[c] + offset[c] + residual); residual may be null. y may be x.
void ScaleAddRelu(const float* x, const float* residual, int64_t rows, int64_t channels, const float* scale,
                  const float* offset, float* y);

// gradient = y > 0 ? gradient : 0; sum[c] += gradient, products[c] += gradient * (x - mean[c]).
void MaskAndAddProducts(const float* x, const float* y, int64_t rows, int64_t channels, const float* mean,
                        float* gradient, float* sum, float* products);

// gradient = gradient * a[c] + x * b[c] + d[c].
void CombineGradient(const float* x, int64_t rows, int64_t channels, const float* a, const float* b, const float* d,
                     float* gradient);

// The two passes above where ReLU was all that followed, y = max(0, x * scale[c] + offset[c]): both make its mask from
// x and neither writes it, so that y is not read and the gradient not written twice.
//
// With g = x * scale[c] + offset[c] > 0 ? gradient : 0: sum[c] += g, products[c] += g * (x - mean[c]).
void AddReluProducts(const float* gradient, const float* x, int64_t rows, int64_t channels, const float* scale,
                     const float* offset, const float* mean, float* sum, float* products);
// out = g * a[c] + x * b[c] + d[c]; out may be gradient.
void CombineReluGradient(const float* gradient, const float* x, int64_t rows, int64_t channels, const float* scale,
                         const float* offset, const float* a, const float* b, const float* d, float* out);

// Max pooling of one row of a map, [width, channels], with windows of 3 pixels, stride 2 and padding 1. Window w has
// the pixels 2 w - 1 to 2 w + 1, as far as the row has them; their taps are first_tap to first_tap + 2.
//
// best, taps: [windows, channels]. A pixel above `best`, and NaN, becomes `best` and leaves its tap in `taps`.
void MaxOfTaps(const float* row, int64_t width, int64_t channels, int64_t windows, int64_t first_tap, float* best,
               int32_t* taps);
// row += the gradient, [windows, channels], of the windows that took the pixel.
void AddToTaps(const float* gradient, const int32_t* taps, int64_t width, int64_t channels, int64_t windows,
               int64_t first_tap, float* row);

}  // namespace ssl

#endif  // SSL_MODELS_CHANNEL_KERNELS_H_
