// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/status_macros.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

absl::Status ReturnIfError(absl::Status status, int* reached) {
  SSL_RETURN_IF_ERROR(status);
  ++*reached;
  return absl::OkStatus();
}

absl::StatusOr<int> Double(absl::StatusOr<int> input) {
  SSL_ASSIGN_OR_RETURN(const int value, input);
  return 2 * value;
}

absl::StatusOr<std::unique_ptr<int>> PassOn(absl::StatusOr<std::unique_ptr<int>> input) {
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<int> value, std::move(input));
  return value;
}

absl::StatusOr<std::pair<int, int>> Pair(int first, int second) { return std::make_pair(first, second); }

absl::StatusOr<int> SumOfPair() {
  SSL_ASSIGN_OR_RETURN(auto pair, Pair(1, 2));
  SSL_ASSIGN_OR_RETURN(const auto other, Pair(3, 4));
  return pair.first + pair.second + other.first + other.second;
}

absl::Status CheckPositive(int value) {
  SSL_RET_CHECK(value > 0, "value must be positive here");
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnIfError_ReturnsErrorsAndPassesOk) {
  int reached = 0;
  EXPECT_THAT(ReturnIfError(absl::NotFoundError("gone"), &reached), StatusIs(absl::StatusCode::kNotFound, "gone"));
  EXPECT_EQ(reached, 0);
  EXPECT_OK(ReturnIfError(absl::OkStatus(), &reached));
  EXPECT_EQ(reached, 1);
}

TEST(StatusMacrosTest, AssignOrReturn_AssignsValuesAndReturnsErrors) {
  EXPECT_EQ(Double(4).value(), 8);
  EXPECT_THAT(Double(absl::DataLossError("torn")), StatusIs(absl::StatusCode::kDataLoss, "torn"));
}

TEST(StatusMacrosTest, AssignOrReturn_MovesMoveOnlyValues) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> value, PassOn(std::make_unique<int>(3)));
  EXPECT_EQ(*value, 3);
}

TEST(StatusMacrosTest, RetCheck_NamesPlaceConditionAndMessage) {
  EXPECT_OK(CheckPositive(1));
  const absl::Status status = CheckPositive(0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("status_macros_test.cc:")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("value must be positive here (value > 0)")));
}

TEST(StatusMacrosTest, AssignOrReturn_TwiceInOneScope) { EXPECT_EQ(SumOfPair().value(), 10); }

}  // namespace
}  // namespace ssl
