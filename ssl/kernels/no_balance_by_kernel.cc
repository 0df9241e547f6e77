// SPDX-License-Identifier: Apache-2.0
//
// What balance_by_kernel.h is in a program for CPUs.
#include "absl/status/status.h"
#include "ssl/kernels/balance_by_kernel.h"

namespace ssl {

bool HasBalanceKernel(const at::Tensor&) { return false; }

absl::StatusOr<at::Tensor> BalanceByKernel(const at::Tensor&, const BalanceOptions&) {
  return absl::InternalError("this program has no kernels: build it with --config=cuda");
}

}  // namespace ssl
