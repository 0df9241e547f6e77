// SPDX-License-Identifier: Apache-2.0
//
// 3x3 convolution with padding 1 in float32 by Winograd's minimal filtering (winograd_kernels.h): up to 4 times fewer
// multiplications than by its definition, with stride 2 up to 1.65 times, by the tiles that fit the map best.
#ifndef SSL_MODELS_WINOGRAD_CONV_H_
#define SSL_MODELS_WINOGRAD_CONV_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// Whether WinogradConv takes these, and is quicker than oneDNN (bench_winograd): on a CPU with AVX-512, float32 without
// autocast, LibTorch's convolutions not held to IEEE (ssl/core/algorithm_scope.h), stride 1 or 2, a multiple of 32
// channels up to 512 on both sides, and 64 tiles or more, below which transforming kernels costs more than it saves.
bool TakesWinograd(const at::Tensor& input, const at::Tensor& weight, int64_t stride);

// A value that is not finite reaches all pixels of the tiles that read it. Errors of rounding are up to 2.8
// times those of the definition in float32 (docs/performance.md); with HasIeeeConvolutions() it is not taken.
//
// input: [N, in, h, w]; weight: [out, in, 3, 3]; returns [N, out, h / stride, w / stride], rounded up, channels-last.
// Only what TakesWinograd.
// Differentiable any number of times (beyond the first by LibTorch's convolution); keeps input and weight for that.
// Results do not depend on the number of threads. Thread-safe. Throws LibTorch's exceptions.
at::Tensor WinogradConv(const at::Tensor& input, const at::Tensor& weight, int64_t stride);

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_CONV_H_
