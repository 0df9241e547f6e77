// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/error_detail.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/base/status_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(ErrorDetailTest, DetailsSurviveAnnotation) {
  absl::Status status = WithDetail(absl::ResourceExhaustedError("out of memory"), kDetailCause, kCauseMemory);
  status = Annotate(WithDetail(status, kDetailErrno, "12"), "step 3");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "step 3: out of memory"));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(status, kDetailErrno), "12");
  EXPECT_EQ(DetailOf(status, kDetailException), "");
}

TEST(ErrorDetailTest, OkHasNone) {
  const absl::Status status = WithDetail(absl::OkStatus(), kDetailErrno, "5");
  EXPECT_OK(status);
  EXPECT_EQ(DetailOf(status, kDetailErrno), "");
}

}  // namespace
}  // namespace ssl
