// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/channel_kernels.h"

#include <cstring>

// One version of the function per instruction set, chosen when the program is loaded. The build's -O2 would leave
// these loops scalar.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SSL_SIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define SSL_SIMD_CLONES
#endif

namespace ssl {

SSL_SIMD_CLONES void WidenBfloat16(const uint16_t* __restrict values, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(values[i]) << 16;
    std::memcpy(&out[i], &bits, sizeof(bits));
  }
}

SSL_SIMD_CLONES void NarrowToBfloat16(const float* __restrict values, int64_t count, uint16_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof(bits));
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    out[i] = static_cast<uint16_t>((nan ? (bits | 0x00400000u) : rounded) >> 16);
  }
}

SSL_SIMD_CLONES void AddMoments(const float* __restrict x, int64_t rows, int64_t channels,
                                const float* __restrict shift, float* __restrict sum, float* __restrict squares) {
  for (int64_t row = 0; row < rows; ++row, x += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float distance = x[c] - shift[c];
      sum[c] += distance;
      squares[c] += distance * distance;
    }
  }
}

SSL_SIMD_CLONES void ScaleAddRelu(const float* x, const float* residual, int64_t rows, int64_t channels,
                                  const float* __restrict scale, const float* __restrict offset, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    if (residual == nullptr) {
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        const float value = x[c] * scale[c] + offset[c];
        y[c] = value < 0.0f ? 0.0f : value;  // keeps NaN
      }
    } else {
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) {
        const float value = x[c] * scale[c] + offset[c] + residual[c];
        y[c] = value < 0.0f ? 0.0f : value;
      }
      residual += channels;
    }
  }
}

SSL_SIMD_CLONES void MaskAndAddProducts(const float* __restrict x, const float* __restrict y, int64_t rows,
                                        int64_t channels, const float* __restrict mean, float* __restrict gradient,
                                        float* __restrict sum, float* __restrict products) {
  for (int64_t row = 0; row < rows; ++row, x += channels, y += channels, gradient += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float masked = y[c] <= 0.0f ? 0.0f : gradient[c];
      gradient[c] = masked;
      sum[c] += masked;
      products[c] += masked * (x[c] - mean[c]);
    }
  }
}

SSL_SIMD_CLONES void CombineGradient(const float* __restrict x, int64_t rows, int64_t channels,
                                     const float* __restrict a, const float* __restrict b, const float* __restrict d,
                                     float* __restrict gradient) {
  for (int64_t row = 0; row < rows; ++row, x += channels, gradient += channels) {
    for (int64_t c = 0; c < channels; ++c) gradient[c] = gradient[c] * a[c] + x[c] * b[c] + d[c];
  }
}

}  // namespace ssl
