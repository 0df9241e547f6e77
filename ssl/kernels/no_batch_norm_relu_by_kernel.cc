// SPDX-License-Identifier: Apache-2.0
//
// What batch_norm_relu_by_kernel.h is in a program for CPUs.
#include <c10/util/Exception.h>

#include "ssl/kernels/batch_norm_relu_by_kernel.h"

namespace ssl {

bool HasBatchNormReluKernel(const at::Tensor&) { return false; }

at::Tensor BatchNormReluByKernel(const at::Tensor&, const at::Tensor&, const BatchNormTensors&) {
  TORCH_CHECK(false, "this program has no kernels: build it with --config=cuda");
}

}  // namespace ssl
