// SPDX-License-Identifier: Apache-2.0
//
// Convolution by its definition: oneDNN's, whose gradient of the weights is a sum over parts of the batch. Each part is
// computed by one thread. oneDNN's own sum over threads waits, by turning in a loop, for threads that the system has
// not scheduled, which beside other programs takes many times as long as the sum.
#ifndef SSL_MODELS_DIRECT_CONV_H_
#define SSL_MODELS_DIRECT_CONV_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// Whether DirectConv takes these: both on the CPU, of float32 or bfloat16 or cast to bfloat16 by autocast, and a batch
// of two samples or more.
bool TakesDirectConv(const at::Tensor& input, const at::Tensor& weight);

// input: [N, in, h, w]; weight: [out, in, kernel, kernel]. Returns what conv2d does, with one group and no bias. In
// bfloat16 each part of the gradient is rounded, and their sum is once more. Only what TakesDirectConv.
// Differentiable any number of times (beyond the first by LibTorch's convolution); keeps input and weight for that.
// The gradient of the weights does not depend on the number of threads. Thread-safe. Throws LibTorch's exceptions.
at::Tensor DirectConv(const at::Tensor& input, const at::Tensor& weight, int64_t stride, int64_t padding);

}  // namespace ssl

#endif  // SSL_MODELS_DIRECT_CONV_H_
