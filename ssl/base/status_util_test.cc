// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/status_util.h"

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(AnnotateTest, Error_KeepsCodeAndPayloadAndGetsThePrefix) {
  absl::Status status = absl::DataLossError("CRC32C differs");
  status.SetPayload("type", absl::Cord("payload"));
  const absl::Status annotated = Annotate(status, "checkpoint step_10");
  EXPECT_THAT(annotated, StatusIs(absl::StatusCode::kDataLoss, "checkpoint step_10: CRC32C differs"));
  EXPECT_EQ(annotated.GetPayload("type"), absl::Cord("payload"));
}

TEST(AnnotateTest, Ok_StaysOk) { EXPECT_OK(Annotate(absl::OkStatus(), "prefix")); }

TEST(BrokenInvariantErrorTest, Message_HasPlaceFirst) {
  EXPECT_THAT(BrokenInvariantError("a.cc", 3, "x == 1", "x is wrong"),
              StatusIs(absl::StatusCode::kInternal, "a.cc:3: x is wrong (x == 1)"));
}

}  // namespace
}  // namespace ssl
