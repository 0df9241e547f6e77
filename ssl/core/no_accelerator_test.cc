// SPDX-License-Identifier: Apache-2.0
//
// Of a build without CUDA.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/accelerator.h"
#include "ssl/core/run_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NoAcceleratorTest, BuildWithoutCuda_NamesTheFlagThatIsMissing) {
  const absl::Status none = CheckAcceleratorIsBuilt();
  EXPECT_THAT(none, StatusIs(absl::StatusCode::kUnimplemented,
                             AllOf(HasSubstr("--config=cuda"), HasSubstr("config.MACHINE.DEVICE=cpu"))));
  EXPECT_EQ(Accelerator(0).status(), none);
}

TEST(NoAcceleratorTest, ConfigurationForAGpu_IsRefusedWithItsKey) {
  const ConfigNode config = ParseYaml("\n\nMACHINE: {DEVICE: gpu}", "run.yaml", nullptr).value();
  MachineOptions options;
  EXPECT_OK(CheckDeviceIsBuilt(options, config));
  options.device = "gpu";
  EXPECT_THAT(CheckDeviceIsBuilt(options, config),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("run.yaml:3: config.MACHINE.DEVICE is gpu"), HasSubstr("DEVICE=cpu"))));
}

}  // namespace
}  // namespace ssl
