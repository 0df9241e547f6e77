// SPDX-License-Identifier: Apache-2.0
//
// What augment_by_kernel.h is in a program for CPUs.
#include "ssl/kernels/augment_by_kernel.h"

namespace ssl {

bool HasAugmentKernel(const at::Device&) { return false; }

absl::Status AugmentByKernel(const at::Tensor&, const at::Tensor&, const ViewNormalization&, at::Tensor*) {
  return absl::InternalError("this program has no kernels: build it with --config=cuda");
}

}  // namespace ssl
