// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/augment_by_kernel.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ssl/base/torch_guard.h"
#include "ssl/kernels/augment_kernel.h"

namespace ssl {
namespace {

// Kernels count a view's values, and those of its first pass, with 32 bits.
absl::Status CheckSize(const ViewPlan& plan) {
  if (ViewWorkBytes(plan) <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a view of ", plan.rows.out, " x ", plan.columns.out, " from ",
                                                 plan.rows.in, " x ", plan.columns.in,
                                                 " pixels is larger than the kernels take"));
}

// Pinned, so that the copy does not wait; LibTorch keeps that memory until it is done.
at::Tensor CopyToDevice(absl::Span<const ViewPlan> plans, const at::Device& device) {
  const int64_t bytes = static_cast<int64_t>(plans.size() * sizeof(ViewPlan));
  at::Tensor pinned = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  std::memcpy(pinned.mutable_data_ptr(), plans.data(), static_cast<size_t>(bytes));
  return pinned.to(device, at::kByte, /*non_blocking=*/true);
}

}  // namespace

bool HasAugmentKernel(const at::Device& device) { return device.is_cuda(); }

absl::Status AugmentByKernel(absl::Span<ViewPlan> plans, const at::Tensor& images,
                             const ViewNormalization& normalization, at::Tensor* result) {
  if (plans.empty()) return absl::OkStatus();
  const c10::cuda::CUDAGuard guard(images.device());
  AugmentLaunch launch;
  int64_t work_bytes = 0;
  for (ViewPlan& plan : plans) {
    const absl::Status status = CheckSize(plan);
    if (!status.ok()) return status;
    plan.work_begin = work_bytes;
    work_bytes += ViewWorkBytes(plan);
    launch.most_tasks = std::max(launch.most_tasks, FirstPass(plan, nullptr, nullptr).tasks());
  }
  const at::Tensor on_device = CopyToDevice(plans, images.device());
  at::Tensor work = at::empty({work_bytes}, images.options());
  launch.plans = static_cast<const ViewPlan*>(on_device.const_data_ptr());
  launch.num_views = static_cast<int>(plans.size());
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
