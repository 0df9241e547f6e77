// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/exit_codes.h"

#include <cerrno>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_util.h"
#include "ssl/io/errno_status.h"

namespace ssl {
namespace {

TEST(ExitCodesTest, EachKindOfErrorHasItsDocumentedCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("loss is nan")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("bug")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("unknown key")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("no such file")), 2);
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("port is taken")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("not in this build")), 2);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("truncated")), 4);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("no space left")), 5);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("read-only")), 5);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("locked")), 5);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("failed on rank 1")), 7);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("rank 1 waited")), 7);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("stopped while listing")), 75);
}

TEST(ExitCodesTest, CauseSaysMoreThanTheCode) {
  const absl::Status memory = WithDetail(absl::ResourceExhaustedError("out"), kDetailCause, kCauseMemory);
  EXPECT_EQ(ExitCodeOf(Annotate(memory, "step 3")), 6);
  EXPECT_EQ(ExitCodeOf(WithDetail(memory, kDetailMemory, kMemoryOfDevice)), 8);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::DataLossError("input/output error"), kDetailErrno, "5")), 5);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::UnavailableError("reset by peer"), kDetailCause, kCausePeer)), 7);
}

TEST(ExitCodesTest, WhatTheMachineLacks_HasAdvice) {
  const absl::Status memory = WithDetail(absl::ResourceExhaustedError("out"), kDetailCause, kCauseMemory);
  EXPECT_THAT(AdviceOn(Annotate(memory, "forward")), ::testing::HasSubstr("BATCHSIZE_PER_REPLICA"));
  EXPECT_THAT(AdviceOn(ErrnoStatus(ENOSPC, "writing", "x")), ::testing::HasSubstr("config.CHECKPOINT.KEEP_LAST"));
  EXPECT_THAT(AdviceOn(ErrnoStatus(EFBIG, "writing", "x")), ::testing::HasSubstr("ulimit -f"));
  EXPECT_EQ(AdviceOn(ErrnoStatus(EACCES, "writing", "x")), "");
  EXPECT_EQ(AdviceOn(absl::InvalidArgumentError("x")), "");
}

}  // namespace
}  // namespace ssl
