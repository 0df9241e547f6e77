// SPDX-License-Identifier: Apache-2.0

#include "ssl/testing/status_matchers.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::unique_ptr<int>> MakeInt(int value) { return std::make_unique<int>(value); }

TEST(StatusMatchersTest, StatusIs_LooksAtCodeAndMessage) {
  const absl::Status status = absl::NotFoundError("file x is missing");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("file x")));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kDataLoss)));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kDataLoss, HasSubstr("file x"))));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kNotFound, HasSubstr("file y"))));
}

TEST(StatusMatchersTest, StatusIs_TakesStatusOr) {
  const absl::StatusOr<int> result = absl::DataLossError("torn");
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kDataLoss, "torn"));
  EXPECT_THAT(result, Not(IsOk()));
}

TEST(StatusMatchersTest, AssertOkAndAssign_MovesTheValue) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> value, MakeInt(3));
  EXPECT_EQ(*value, 3);
}

TEST(StatusMatchersTest, ExpectOk_FailsWithTheStatusInTheText) {
  EXPECT_OK(absl::OkStatus());
  EXPECT_NONFATAL_FAILURE(EXPECT_OK(absl::InternalError("broken")), "INTERNAL: broken");
}

TEST(StatusMatchersTest, AssertOk_IsFatal) {
  EXPECT_FATAL_FAILURE(ASSERT_OK(absl::InternalError("broken")), "INTERNAL: broken");
  EXPECT_FATAL_FAILURE(
      {
        ASSERT_OK_AND_ASSIGN(const int value, absl::StatusOr<int>(absl::InternalError("broken")));
        static_cast<void>(value);
      },
      "INTERNAL: broken");
}

}  // namespace
}  // namespace ssl
