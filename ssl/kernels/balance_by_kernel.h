// SPDX-License-Identifier: Apache-2.0
//
// Sinkhorn-Knopp (ssl/losses/sinkhorn.h) by a kernel of this program: all iterations of all problems in one launch.
#ifndef SSL_KERNELS_BALANCE_BY_KERNEL_H_
#define SSL_KERNELS_BALANCE_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ssl/kernels/balance_scores.h"

namespace ssl {

// Where there is one for these scores, [..., n, K]: in builds with --config=cuda, on NVIDIA GPUs, for K of at most 4096
// and not more problems than the GPU has processors.
bool HasBalanceKernel(const at::Tensor& scores);

// float32 assignments of the same shape, outside the graph, whose rows sum to 1: those of one rank. scores: not empty.
// Internal when the kernel cannot be started, or there is none. Does not wait for it; may throw LibTorch exceptions.
absl::StatusOr<at::Tensor> BalanceByKernel(const at::Tensor& scores, const BalanceOptions& options);

}  // namespace ssl

#endif  // SSL_KERNELS_BALANCE_BY_KERNEL_H_
