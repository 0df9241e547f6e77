// SPDX-License-Identifier: Apache-2.0
//
// What scale_by_kernel.h is in a program for CPUs.
#include <c10/util/Exception.h>

#include "ssl/kernels/scale_by_kernel.h"

namespace ssl {

bool HasScaleKernel(const std::vector<at::Tensor>&, const std::vector<at::Tensor>&, const at::Tensor&) { return false; }

void ScaleByKernel(const std::vector<at::Tensor>&, const std::vector<at::Tensor>&, double, const at::Tensor&) {
  TORCH_CHECK(false, "this program has no kernels: build it with --config=cuda");
}

}  // namespace ssl
