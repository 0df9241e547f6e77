// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_device.h"

#include <c10/util/Exception.h>

#include <string>

#include "absl/functional/function_ref.h"
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

absl::StatusOr<c10::Device> DeviceOf(const std::string& name, Communicator& communicator,
                                     absl::FunctionRef<std::string()> visible_devices = &VisibleDevices) {
  StandinDevice::Install();
  MachineOptions options;
  options.device = name;
  const ConfigNode config = ParseYaml(absl::StrCat("\nMACHINE: {DEVICE: ", name, "}"), "run.yaml", nullptr).value();
  return RunDevice(options, config, communicator, visible_devices);
}

TEST(RunDeviceTest, OfTheName) {
  EXPECT_OK(ProcessWorld(1).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_EQ(DeviceOf("cpu", communicator).value(), c10::Device(c10::kCPU));
    EXPECT_EQ(DeviceOf("gpu", communicator).value(), StandinDevice::device());
    return absl::OkStatus();
  }));
}

// Each process has but one, and it is another one.
TEST(RunDeviceTest, ProcessesThatSeeADeviceOfTheirOwnEach_TakeIt) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    const auto own = [&] { return absl::StrCat("device of rank ", communicator.rank()); };
    EXPECT_EQ(DeviceOf("gpu", communicator, own).value(), StandinDevice::device());
    return communicator.Barrier();
  }));
}

// One of them cannot look: nobody waits for it.
TEST(RunDeviceTest, OneProcessThatCannotLook_EndsAllWithTheKey) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    const auto look = [&]() -> std::string {
      TORCH_CHECK(communicator.rank() == 0, "a broken driver");
      return "";
    };
    EXPECT_THAT(DeviceOf("gpu", communicator, look).status().message(),
                AllOf(HasSubstr("run.yaml:2: config.MACHINE.DEVICE is gpu"), HasSubstr("a broken driver")));
    return communicator.Barrier();
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
