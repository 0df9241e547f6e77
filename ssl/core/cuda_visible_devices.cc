// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/accelerator_type.h"
#include "ssl/core/visible_devices.h"

namespace ssl {

std::string VisibleDevices() {
  if (AcceleratorType() != c10::DeviceType::CUDA) return "";
  std::string uuids;
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i) {
    const cudaUUID_t& uuid = at::cuda::getDeviceProperties(i)->uuid;
    absl::StrAppend(&uuids, absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes))), "\n");
  }
  return uuids;
}

}  // namespace ssl
