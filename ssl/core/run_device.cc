// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_device.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/accelerator.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/process_number.h"

namespace ssl {
namespace {

std::string SettingOf(const MachineOptions& options, const ConfigNode& config) {
  return absl::StrCat(config.FindPath("MACHINE.DEVICE")->location().ToString(), ": config.MACHINE.DEVICE is ",
                      options.device);
}

}  // namespace

absl::Status CheckDeviceIsBuilt(const MachineOptions& options, const ConfigNode& config) {
  if (options.device == "cpu") return absl::OkStatus();
  return Annotate(CheckAcceleratorIsBuilt(), SettingOf(options, config));
}

absl::StatusOr<c10::Device> RunDevice(const MachineOptions& options, const ConfigNode& config,
                                      Communicator& communicator, absl::FunctionRef<std::string()> visible_devices) {
  if (options.device == "cpu") return c10::Device(c10::kCPU);
  std::string visible;
  const absl::Status seen = GuardTorch("looking for devices", [&] {
    visible = visible_devices();
    return absl::OkStatus();
  });
  SSL_ASSIGN_OR_RETURN(const int64_t number, ProcessNumberOnHost(visible, communicator));
  const absl::StatusOr<c10::Device> device = seen.ok() ? Accelerator(number) : seen;
  // A host may lack a GPU that others have.
  SSL_RETURN_IF_ERROR(
      AgreeOnStatus(Annotate(device.status(), SettingOf(options, config)), "taking the device", communicator));
  return device;
}

}  // namespace ssl
