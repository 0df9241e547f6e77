// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/accelerator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(AcceleratorTest, IsTheDeviceThatTheProcessHasRegistered) {
  StandinDevice::Install();
  EXPECT_OK(CheckAcceleratorIsBuilt());
  ASSERT_OK_AND_ASSIGN(const c10::Device device, Accelerator(0));
  EXPECT_EQ(device, StandinDevice::device());
}

TEST(AcceleratorTest, IndexBeyondThoseOfTheHost_IsRefusedWithTheirNumber) {
  StandinDevice::Install();
  EXPECT_THAT(Accelerator(1),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("process 1 of this host, counted from 0, has no GPU: there is 1"),
                             HasSubstr("--launch=local:1"))));
}

}  // namespace
}  // namespace ssl
