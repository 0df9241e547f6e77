// SPDX-License-Identifier: Apache-2.0
//
// scale_gradients.h by a kernel of this program, on NVIDIA GPUs.
#ifndef SSL_KERNELS_SCALE_BY_KERNEL_H_
#define SSL_KERNELS_SCALE_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace ssl {

// In builds with --config=cuda, for float32 on one NVIDIA GPU, without gaps; a parameter lies as its gradient does.
bool HasScaleKernel(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                    const at::Tensor& rates);

// As ScaleGradients. Requires HasScaleKernel.
void ScaleByKernel(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                   double weight_decay, const at::Tensor& rates);

}  // namespace ssl

#endif  // SSL_KERNELS_SCALE_BY_KERNEL_H_
