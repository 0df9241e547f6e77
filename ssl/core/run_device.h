// SPDX-License-Identifier: Apache-2.0
//
// Where this process computes.
#ifndef SSL_CORE_RUN_DEVICE_H_
#define SSL_CORE_RUN_DEVICE_H_

#include <c10/core/Device.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/core_options.h"
#include "ssl/core/visible_devices.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Unimplemented, with the key, in a program that was built without code for MACHINE.DEVICE. Asks no driver: the machine
// that starts a run or looks at it need not be the one that trains.
absl::Status CheckDeviceIsBuilt(const MachineOptions& options, const ConfigNode& config);

// What MACHINE.DEVICE of `config`, the tree under "config" that `options` are from, is on this machine: each process of
// it takes an accelerator of its own, of those that visible_devices tells apart. An error on all ranks, which names the
// key, when one of them finds none. Collective unless it is the CPU.
absl::StatusOr<c10::Device> RunDevice(const MachineOptions& options, const ConfigNode& config,
                                      Communicator& communicator,
                                      absl::FunctionRef<std::string()> visible_devices = &VisibleDevices);

}  // namespace ssl

#endif  // SSL_CORE_RUN_DEVICE_H_
