// SPDX-License-Identifier: Apache-2.0
//
// The 7x7 convolution with stride 2 and padding 3 that ResNets begin with, in float32 by Winograd's filtering
// (stem_kernels.h): a third of the multiplications of its definition.
#ifndef SSL_MODELS_STEM_CONV_H_
#define SSL_MODELS_STEM_CONV_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// Whether StemConv takes these, and is quicker than oneDNN (bench_winograd): on a CPU with AVX-512, float32 without
// autocast, images of three channels, 7x7 taps, a multiple of 32 output channels up to 512, and 64 tiles or more.
bool TakesStemConv(const at::Tensor& input, const at::Tensor& weight);

// A value that is not finite reaches all pixels of the tiles that read it. Errors of rounding are at most four times
// those of the definition in float32.
//
// input: [N, 3, h, w], of any strides; weight: [out, 3, 7, 7]; returns [N, out, h / 2, w / 2], rounded up,
// channels-last. Only what TakesStemConv. Differentiable any number of times (for the input, and beyond the first time,
// by LibTorch's convolution); keeps input and weight for that. Results do not depend on the number of threads.
// Thread-safe. Throws LibTorch's exceptions.
at::Tensor StemConv(const at::Tensor& input, const at::Tensor& weight);

}  // namespace ssl

#endif  // SSL_MODELS_STEM_CONV_H_
