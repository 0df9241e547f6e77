// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/exit_codes.h"

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(ExitCodesTest, EachKindOfErrorHasItsDocumentedCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("loss is nan")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("bug")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("unknown key")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("no such file")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("not in this build")), 2);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("truncated")), 4);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("no space left")), 5);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("read-only")), 5);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("locked")), 5);
}

}  // namespace
}  // namespace ssl
