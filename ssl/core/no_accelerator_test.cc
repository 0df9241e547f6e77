// SPDX-License-Identifier: Apache-2.0
//
// Of a build without CUDA.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/accelerator.h"
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

}  // namespace
}  // namespace ssl
