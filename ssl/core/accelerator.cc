// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/accelerator.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {

std::optional<c10::DeviceType> AcceleratorType() {
  if (c10::is_privateuse1_backend_registered()) return c10::DeviceType::PrivateUse1;
  if (at::CUDAHooksRegistry()->Has("CUDAHooks")) return c10::DeviceType::CUDA;
  return std::nullopt;
}

absl::Status CheckAcceleratorIsBuilt() {
  if (AcceleratorType().has_value()) return absl::OkStatus();
  return absl::UnimplementedError(
      "this program was built without GPU code: build it with --config=cuda (docs/cuda.md), or set "
      "config.MACHINE.DEVICE=cpu");
}

absl::StatusOr<c10::Device> Accelerator(int64_t index) {
  SSL_RETURN_IF_ERROR(CheckAcceleratorIsBuilt());
  const c10::DeviceType type = *AcceleratorType();
  const int64_t count = c10::impl::VirtualGuardImpl(type).deviceCount();
  if (count == 0) {
    return absl::FailedPreconditionError(
        "no GPU can be used here: there is none, or its driver is missing or older than CUDA 13 asks for (release 580, "
        "see nvidia-smi), or CUDA_VISIBLE_DEVICES hides it; config.MACHINE.DEVICE=cpu runs without one");
  }
  if (index >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", index, " of this host, counted from 0, has no GPU: there ",
                     count == 1 ? "is 1" : absl::StrCat("are ", count), ", and each process takes one; start at most ",
                     count, " on this host (--launch=local:", count, ")"));
  }
  return c10::Device(type, static_cast<c10::DeviceIndex>(index));
}

}  // namespace ssl
