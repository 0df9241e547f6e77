// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows of channels that batch norm with ReLU is made of, on plain arrays.
//
// x, y, ... are [rows, channels] row-major, float32, or bfloat16 as its bits, which is computed with in float32 and
// rounded to nearest even when it is written, where NaN stays NaN; s[c] and the like are per channel. Each function
// makes one pass, and is compiled for AVX-512, AVX2 and any x86; the machine picks. Sums are of float32, row after row.
// Thread-safe.
#ifndef SSL_MODELS_CHANNEL_KERNELS_H_
#define SSL_MODELS_CHANNEL_KERNELS_H_

#include <cstdint>

namespace ssl {

// out = values, in float32.
void Widen(const float* values, int64_t count, float* out);
void Widen(const uint16_t* values, int64_t count, float* out);

// sum[c] += x - shift[c], squares[c] += (x - shift[c])^2.
void AddMoments(const float* x, int64_t rows, int64_t channels, const float* shift, float* sum, float* squares);
void AddMoments(const uint16_t* x, int64_t rows, int64_t channels, const float* shift, float* sum, float* squares);

// y = max(0, x * scale[c] + offset[c] + residual); residual may be null. y may be x.
void ScaleAddRelu(const float* x, const float* residual, int64_t rows, int64_t channels, const float* scale,
                  const float* offset, float* y);
void ScaleAddRelu(const uint16_t* x, const uint16_t* residual, int64_t rows, int64_t channels, const float* scale,
                  const float* offset, uint16_t* y);

// masked = y > 0 ? gradient : 0; sum[c] += masked, products[c] += masked * (x - mean[c]).
void MaskAndAddProducts(const float* x, const float* y, const float* gradient, int64_t rows, int64_t channels,
                        const float* mean, float* masked, float* sum, float* products);
void MaskAndAddProducts(const uint16_t* x, const uint16_t* y, const uint16_t* gradient, int64_t rows, int64_t channels,
                        const float* mean, uint16_t* masked, float* sum, float* products);

// out = gradient * a[c] + x * b[c] + d[c]; out may be gradient.
void CombineGradient(const float* x, const float* gradient, int64_t rows, int64_t channels, const float* a,
                     const float* b, const float* d, float* out);
void CombineGradient(const uint16_t* x, const uint16_t* gradient, int64_t rows, int64_t channels, const float* a,
                     const float* b, const float* d, uint16_t* out);

}  // namespace ssl

#endif  // SSL_MODELS_CHANNEL_KERNELS_H_
