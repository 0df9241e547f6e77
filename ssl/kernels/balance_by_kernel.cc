// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/balance_by_kernel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/kernels/balance_kernel.h"

namespace ssl {
namespace {

int BlocksFor(const at::Tensor& scores) {
  const c10::cuda::CUDAGuard guard(scores.device());
  const int64_t samples = scores.size(-2), prototypes = scores.size(-1);
  const int64_t problems = scores.numel() / (samples * prototypes);
  if (prototypes > kMostKernelPrototypes) return 0;
  return BalanceBlocks(problems, samples);
}

}  // namespace

bool HasBalanceKernel(const at::Tensor& scores) { return scores.is_cuda() && BlocksFor(scores) > 0; }

absl::StatusOr<at::Tensor> BalanceByKernel(const at::Tensor& scores, const BalanceOptions& options) {
  const at::NoGradGuard no_grad;
  const c10::cuda::CUDAGuard guard(scores.device());
  const at::Tensor input = scores.detach().to(at::kFloat).contiguous();
  at::Tensor assignments = at::empty_like(input);
  BalanceLaunch launch;
  launch.samples = input.size(-2);
  launch.prototypes = static_cast<int>(input.size(-1));
  launch.problems = static_cast<int>(input.numel() / (launch.samples * launch.prototypes));
  launch.options = options;
  const int blocks = BlocksFor(input);
  at::Tensor work = at::empty({BalanceWorkFloats(launch.problems, blocks, launch.prototypes)}, input.options());
  launch.scores = input.const_data_ptr<float>();
  launch.assignments = assignments.mutable_data_ptr<float>();
  launch.work = work.mutable_data_ptr<float>();
  // Its first launch may lack memory as an allocation does, and is told alike.
  SSL_RETURN_IF_ERROR(GuardTorch("Sinkhorn-Knopp on the GPU", [&] {
    C10_CUDA_CHECK(static_cast<cudaError_t>(LaunchBalance(launch, blocks, c10::cuda::getCurrentCUDAStream().stream())));
    return absl::OkStatus();
  }));
  return assignments;
}

}  // namespace ssl
