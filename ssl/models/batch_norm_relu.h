// SPDX-License-Identifier: Apache-2.0
//
// relu(batch_norm(input) + residual) in training mode, as one operation: on the CPU, and by a kernel on NVIDIA GPUs
// (ssl/kernels/batch_norm_relu_by_kernel.h).
//
// As separate operators this reads and writes the feature map nine times forward; here it is read twice and written
// once, and backward needs no extra pass for ReLU. Statistics, running averages and gradients are those of
// torch.nn.BatchNorm2d followed by ReLU, up to rounding.
#ifndef SSL_MODELS_BATCH_NORM_RELU_H_
#define SSL_MODELS_BATCH_NORM_RELU_H_

#include <ATen/core/Tensor.h>

#include "ssl/models/layers.h"

namespace ssl {

// Whether BatchNormRelu takes these tensors: channels-last maps, on the CPU of float32 or bfloat16, on a GPU those that
// its kernel takes, and no group of ranks; residual (if defined) of the same kind and shape, parameters float32.
bool CanFuseBatchNormRelu(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual);

// input: [N, C, H, W]; residual: the same, or undefined; mode: kTraining or kRecompute. Requires CanFuseBatchNormRelu.
// Neither input nor residual may be changed in place before backward. With a group of ranks forward (in kTraining) and
// backward are collective, one all-reduce each.
at::Tensor BatchNormRelu(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual,
                         NormMode mode);

}  // namespace ssl

#endif  // SSL_MODELS_BATCH_NORM_RELU_H_
