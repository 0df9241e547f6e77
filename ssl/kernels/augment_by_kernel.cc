// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/augment_by_kernel.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/torch_guard.h"
#include "ssl/kernels/augment_kernel.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {
namespace {

// Kernels count a view's values, and those of its first pass, with 32 bits.
absl::Status CheckSize(const ViewPlan& plan) {
  if (ViewWorkBytes(plan) <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a view of ", plan.rows.out, " x ", plan.columns.out, " from ",
                                                 plan.rows.in, " x ", plan.columns.in,
                                                 " pixels is larger than the kernels take"));
}

}  // namespace

bool HasAugmentKernel(const at::Device& device) { return device.is_cuda(); }

absl::Status AugmentByKernel(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                             at::Tensor* result) {
  const absl::Span<ViewPlan> views(static_cast<ViewPlan*>(plans.mutable_data_ptr()),
                                   static_cast<size_t>(plans.numel()) / sizeof(ViewPlan));
  if (views.empty()) return absl::OkStatus();
  const c10::cuda::CUDAGuard guard(images.device());
  AugmentLaunch launch;
  int64_t work_bytes = 0;
  for (ViewPlan& plan : views) {
    const absl::Status status = CheckSize(plan);
    if (!status.ok()) return status;
    plan.work_begin = work_bytes;
    work_bytes += ViewWorkBytes(plan);
    launch.most_tasks = std::max(launch.most_tasks, FirstPass(plan, nullptr, nullptr).tasks());
  }
  const at::Tensor on_device = plans.to(images.device(), at::kByte, /*non_blocking=*/true);
  at::Tensor work = at::empty({work_bytes}, images.options());
  launch.plans = static_cast<const ViewPlan*>(on_device.const_data_ptr());
  launch.num_views = static_cast<int>(views.size());
  launch.images = images.const_data_ptr<uint8_t>();
  launch.work = work.mutable_data_ptr<uint8_t>();
  launch.result = result->mutable_data_ptr<float>();
  launch.normalization = normalization;
  // Its first launch may lack memory as an allocation does, and is told alike.
  return GuardTorch("augmenting on the GPU", [&] {
    C10_CUDA_CHECK(static_cast<cudaError_t>(LaunchAugment(launch, c10::cuda::getCurrentCUDAStream().stream())));
    return absl::OkStatus();
  });
}

}  // namespace ssl
