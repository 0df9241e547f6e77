// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_device.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::StatusOr<c10::Device> DeviceOf(const std::string& name, Communicator& communicator) {
  StandinDevice::Install();
  MachineOptions options;
  options.device = name;
  const ConfigNode config = ParseYaml(absl::StrCat("\nMACHINE: {DEVICE: ", name, "}"), "run.yaml", nullptr).value();
  return RunDevice(options, config, communicator);
}

TEST(RunDeviceTest, OfTheName) {
  EXPECT_OK(ProcessWorld(1).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_EQ(DeviceOf("cpu", communicator).value(), c10::Device(c10::kCPU));
    EXPECT_EQ(DeviceOf("gpu", communicator).value(), StandinDevice::device());
    return absl::OkStatus();
  }));
}

TEST(RunDeviceTest, OneProcessWithoutADevice_EndsAllWithTheKey) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_THAT(DeviceOf("gpu", communicator),
                StatusIs(communicator.rank() == 1 ? absl::StatusCode::kNotFound : absl::StatusCode::kAborted,
                         AllOf(HasSubstr("run.yaml:2: config.MACHINE.DEVICE is gpu"),
                               HasSubstr("process 1 of this host, counted from 0, has no GPU: there is 1"))));
    return communicator.Barrier();
  }));
}

}  // namespace
}  // namespace ssl
