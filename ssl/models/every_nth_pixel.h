// SPDX-License-Identifier: Apache-2.0
//
// Every n-th pixel of a map in both directions, beginning with the first: what a convolution of single pixels with
// stride n reads.
//
// As slices are, but with a gradient in the layout of the map: that of LibTorch's slices is never channels-last, and
// every pass behind it would copy it.
#ifndef SSL_MODELS_EVERY_NTH_PIXEL_H_
#define SSL_MODELS_EVERY_NTH_PIXEL_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// input: [N, C, H, W]; n >= 1; returns [N, C, ceil(H / n), ceil(W / n)], channels-last. Differentiable once.
// Thread-safe.
at::Tensor EveryNthPixel(const at::Tensor& input, int64_t n);

}  // namespace ssl

#endif  // SSL_MODELS_EVERY_NTH_PIXEL_H_
