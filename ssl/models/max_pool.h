// SPDX-License-Identifier: Apache-2.0
//
// The max pooling of a ResNet's stem, 3x3 with stride 2 and padding 1, as at::max_pool2d: the same values, and
// gradients added up in the same order.
//
// Channels-last maps on the CPU, float32 or bfloat16, take kernels of this package. LibTorch's remember the place of
// each maximum as 8 bytes, twice the map's own; a byte is enough for nine places. Other maps are at::max_pool2d's.
#ifndef SSL_MODELS_MAX_POOL_H_
#define SSL_MODELS_MAX_POOL_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// input: [N, C, H, W]; returns [N, C, ceil(H / 2), ceil(W / 2)]. Differentiable once. Thread-safe. Throws LibTorch's
// exceptions.
at::Tensor MaxPool(const at::Tensor& input);

}  // namespace ssl

#endif  // SSL_MODELS_MAX_POOL_H_
