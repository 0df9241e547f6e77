// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/collective_check.h"

#include <c10/util/Exception.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/torch_guard.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(CheckCollective, Ok_Passes) { EXPECT_NO_THROW(CheckCollective(absl::OkStatus(), "norms over ranks")); }

TEST(CheckCollective, Failure_IsLibTorchsOwnTypeOfIt) {
  EXPECT_THROW(CheckCollective(absl::UnavailableError("rank 1 ended"), "norms over ranks"), c10::DistBackendError);
}

TEST(CheckCollective, Failure_BecomesOneOfAPeer) {
  const absl::Status status = GuardTorch("optimizer step", [] {
    CheckCollective(absl::DeadlineExceededError("no answer from rank 1"), "norms over ranks");
    return absl::OkStatus();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               "optimizer step: norms over ranks: DEADLINE_EXCEEDED: no answer from rank 1"));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
}

}  // namespace
}  // namespace ssl
