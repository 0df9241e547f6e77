// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/accelerator_type.h"

#include <ATen/detail/CUDAHooksInterface.h>

namespace ssl {

std::optional<c10::DeviceType> AcceleratorType() {
  if (c10::is_privateuse1_backend_registered()) return c10::DeviceType::PrivateUse1;
  if (at::CUDAHooksRegistry()->Has("CUDAHooks")) return c10::DeviceType::CUDA;
  return std::nullopt;
}

}  // namespace ssl
