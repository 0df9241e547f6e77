// SPDX-License-Identifier: Apache-2.0
//
// What worlds of virtual ranks do with it is in virtual_world_test.cc and communicator_test.cc.
#include "ssl/distributed/virtual_meeting.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

absl::StatusOr<at::Tensor> First(const Meeting::Deposits& deposits) { return deposits.front(); }

// Two ranks of one process, both of which this thread is.
class VirtualMeetingTest : public ::testing::Test {
 protected:
  // A tensor that is counted as long as anybody has it.
  at::Tensor Counted() {
    ++tensors_;
    return at::from_blob(
        &value_, {1}, [this](void*) { --tensors_; }, at::kFloat);
  }

  Turns turns_{2};
  Meeting meeting_{turns_, {0, 1}, {2}, MakeLocalCommunicator()};
  int64_t tensors_ = 0;

 private:
  float value_ = 0;
};

TEST_F(VirtualMeetingTest, ARoundIsForgotten_OnceAllHaveItsResult) {
  const int64_t number = meeting_.Deposit(0, "sum", Counted(), First);
  ASSERT_EQ(meeting_.Deposit(1, "sum", Counted(), First), number);
  EXPECT_OK(meeting_.Collect(0, number));
  EXPECT_EQ(tensors_, 2) << "the other rank has not been here";
  EXPECT_OK(meeting_.Collect(1, number));
  EXPECT_EQ(tensors_, 0);
}

TEST_F(VirtualMeetingTest, ARoundThatARankLeft_IsForgotten) {
  const int64_t number = meeting_.Deposit(0, "sum", Counted(), First);
  meeting_.Leave(1, absl::ResourceExhaustedError("no memory"));
  EXPECT_THAT(meeting_.Collect(0, number), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(tensors_, 0);
}

TEST_F(VirtualMeetingTest, ARoundOfWhichARankLeavesBeforeItsResult_IsForgotten) {
  const int64_t number = meeting_.Deposit(0, "sum", Counted(), First);
  ASSERT_EQ(meeting_.Deposit(1, "sum", Counted(), First), number);
  meeting_.Leave(1, absl::ResourceExhaustedError("no memory"));
  EXPECT_OK(meeting_.Collect(0, number));
  EXPECT_THAT(meeting_.Collect(1, number), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(tensors_, 0);
}

// Of three, of which the second has left.
TEST_F(VirtualMeetingTest, ARoundIsKept_ForTheRankThatIsStillToCome) {
  for (const bool comes : {true, false}) {
    SCOPED_TRACE(comes);
    Turns turns(3);
    Meeting meeting(turns, {0, 1, 2}, {3}, MakeLocalCommunicator());
    const int64_t number = meeting.Deposit(0, "sum", Counted(), First);
    meeting.Leave(1, absl::ResourceExhaustedError("no memory"));
    EXPECT_THAT(meeting.Collect(0, number), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(tensors_, 1);
    if (comes) {
      EXPECT_EQ(meeting.Deposit(2, "sum", Counted(), First), number);
      EXPECT_THAT(meeting.Collect(2, number), StatusIs(absl::StatusCode::kUnavailable));
    } else {
      meeting.Leave(2, absl::ResourceExhaustedError("no memory"));
    }
    EXPECT_EQ(tensors_, 0);
  }
}

}  // namespace
}  // namespace ssl
