// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/scale_gradients.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>

#include "ssl/kernels/scale_by_kernel.h"

namespace ssl {

void ScaleGradients(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                    double weight_decay, const at::Tensor& rates) {
  if (HasScaleKernel(gradients, parameters, rates)) return ScaleByKernel(gradients, parameters, weight_decay, rates);
  if (weight_decay != 0.0) at::_foreach_add_(gradients, parameters, weight_decay);
  at::_foreach_mul_(gradients, rates.unbind());
}

}  // namespace ssl
