// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/accelerator.h"

#include <c10/core/DeviceType.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/accelerator_type.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/cuda_devices.h"

namespace ssl {
namespace {

absl::StatusOr<int64_t> Count(c10::DeviceType type) {
  if (type == c10::DeviceType::CUDA) return CountCudaDevices();
  return c10::impl::VirtualGuardImpl(type).deviceCount();
}

}  // namespace

absl::Status CheckAcceleratorIsBuilt() {
  if (AcceleratorType().has_value()) return absl::OkStatus();
  return absl::UnimplementedError(
      "this program was built without GPU code: build it with --config=cuda (docs/cuda.md), or set "
      "config.MACHINE.DEVICE=cpu");
}

absl::StatusOr<c10::Device> Accelerator(int64_t index) {
  SSL_RETURN_IF_ERROR(CheckAcceleratorIsBuilt());
  const c10::DeviceType type = *AcceleratorType();
  SSL_ASSIGN_OR_RETURN(const int64_t count, Count(type));
  if (index >= count) {
    return absl::NotFoundError(absl::StrCat("process ", index, " of this host, counted from 0, has no GPU: there ",
                                            count == 1 ? "is 1" : absl::StrCat("are ", count),
                                            ", and each process takes one; start at most ", count,
                                            " on this host (--launch=local:", count, ")"));
  }
  if (type == c10::DeviceType::CUDA) SSL_RETURN_IF_ERROR(CheckCudaArchitecture(index));
  return c10::Device(type, static_cast<c10::DeviceIndex>(index));
}

}  // namespace ssl
