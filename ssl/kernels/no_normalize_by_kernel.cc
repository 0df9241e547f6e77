// SPDX-License-Identifier: Apache-2.0
//
// What normalize_by_kernel.h is in a program for CPUs.
#include "absl/status/status.h"
#include "ssl/kernels/normalize_by_kernel.h"

namespace ssl {

bool HasNormalizeKernel(const at::Tensor&) { return false; }

absl::StatusOr<at::Tensor> NormalizeByKernel(const at::Tensor&, absl::Span<const double>, absl::Span<const double>,
                                             at::ScalarType) {
  return absl::InternalError("this program has no kernels: build it with --config=cuda");
}

}  // namespace ssl
