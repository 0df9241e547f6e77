// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/nccl_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(NcclCommunicatorTest, ProgramForCpus_NamesTheFlagOfTheBuild) {
  EXPECT_FALSE(HasNccl());
  EXPECT_THAT(MakeNcclCommunicator({}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("--config=cuda")));
}

}  // namespace
}  // namespace ssl
