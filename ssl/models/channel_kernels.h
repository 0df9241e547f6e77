// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows of channels that batch norm with ReLU is made of, on plain float arrays.
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

}  // namespace ssl

#endif  // SSL_MODELS_CHANNEL_KERNELS_H_
