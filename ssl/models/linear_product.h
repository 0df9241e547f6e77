// SPDX-License-Identifier: Apache-2.0
//
// input weight^T + bias, as at::linear, in the quicker of the two libraries for it: float32 matrices on a CPU that are
// large enough go to oneDNN, which has kernels for every AVX-512 machine; the BLAS of LibTorch (MKL) takes those of
// AVX2 on AMD's, at less than half the speed. All else, also within autocast, is at::linear itself.
#ifndef SSL_MODELS_LINEAR_PRODUCT_H_
#define SSL_MODELS_LINEAR_PRODUCT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// Whether [rows, in] times [in, out] is large enough for oneDNN's kernels to be worth their call.
bool IsLargeProduct(int64_t rows, int64_t in, int64_t out);

// input: [N, in]; weight: [out, in]; bias: [out], or undefined. Differentiable once. Thread-safe. Throws LibTorch's
// exceptions.
at::Tensor LinearProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace ssl

#endif  // SSL_MODELS_LINEAR_PRODUCT_H_
