// SPDX-License-Identifier: Apache-2.0
//
// An accelerator for tests on machines without one: a device of LibTorch ("standin:0", type PrivateUse1) whose kernels
// are the CPU's. Results are the CPU's, bit for bit, and what a GPU would refuse or would wait for shows:
// docs/devices.md.
//
//   StandinDevice::Install();
//   const at::Tensor images = batch.to(StandinDevice::device());
//   const TransferLog log;
//   ...                                        // a step
//   EXPECT_EQ(log.reads(), TransferCounts());  // it has read nothing back
//
// What it refuses, with an error that names operator and argument: an operator that gets a tensor of the host with one
// dimension or more beside one of the device, random numbers from a generator of the CPU, a device index but 0. Its
// memory is the host's under other addresses: who reads data_ptr() of its tensors on the host dies by SIGSEGV.
#ifndef SSL_TESTING_STANDIN_DEVICE_H_
#define SSL_TESTING_STANDIN_DEVICE_H_

#include <c10/core/Device.h>

namespace ssl {

class StandinDevice {
 public:
  // Registers the device with LibTorch, for the rest of the process; to be called before the first tensor there. Calls
  // after the first one do nothing. Thread-safe.
  static void Install();

  // Lets the device's generator refuse a state once, after it has taken so many more, as a GPU's does that has had an
  // error. Thread-safe.
  static void FailGeneratorState(int after);

  static c10::Device device() { return {c10::DeviceType::PrivateUse1, 0}; }
};

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_DEVICE_H_
