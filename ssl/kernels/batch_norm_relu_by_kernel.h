// SPDX-License-Identifier: Apache-2.0
//
// relu(batch_norm(input) + residual) in training mode, with its backward, by kernels of this program on NVIDIA GPUs.
#ifndef SSL_KERNELS_BATCH_NORM_RELU_BY_KERNEL_H_
#define SSL_KERNELS_BATCH_NORM_RELU_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// Of a batch norm over C channels. All are on the device of its input; [C] and float32 where nothing else is said.
struct BatchNormTensors {
  at::Tensor weight;
  at::Tensor bias;
  // Undefined: the batch's statistics are not added to running ones.
  at::Tensor running_mean;
  at::Tensor running_variance;
  at::Tensor num_batches;  // int64, without dimensions: one is added
  double momentum = 0.0;
  double epsilon = 0.0;
};

// Where there are kernels for a map [N, C, H, W] like this one: in builds with --config=cuda, channels-last on an
// NVIDIA GPU, of float32, float16 or bfloat16, with C a multiple of what 16 bytes hold.
bool HasBatchNormReluKernel(const at::Tensor& map);

// residual: undefined, or of input's kind and shape. Requires HasBatchNormReluKernel of both. Keeps input, and with a
// residual the result, for backward. Equal inputs give equal bits. Nothing waits for the device; throws LibTorch
// exceptions, in a program without kernels always.
at::Tensor BatchNormReluByKernel(const at::Tensor& input, const at::Tensor& residual, const BatchNormTensors& layer);

}  // namespace ssl

#endif  // SSL_KERNELS_BATCH_NORM_RELU_BY_KERNEL_H_
