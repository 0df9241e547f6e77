// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/process_number.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(ProcessNumberTest, ProcessesOfAMachine_AreCounted) {
  EXPECT_EQ(ProcessNumberOnHost("", *MakeLocalCommunicator()).value_or(-1), 0);
  EXPECT_OK(ProcessWorld(3).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_EQ(ProcessNumberOnHost("", communicator).value_or(-1), communicator.rank());
    return communicator.Barrier();
  }));
}

// As where a scheduler shows each task a GPU of its own, or two of them the same pair.
TEST(ProcessNumberTest, ProcessesThatSeeOtherDevices_AreCountedByThemselves) {
  EXPECT_OK(ProcessWorld(3).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_EQ(ProcessNumberOnHost(absl::StrCat("GPU ", communicator.rank()), communicator).value_or(-1), 0);
    const bool is_last = communicator.rank() == 2;
    EXPECT_EQ(ProcessNumberOnHost(is_last ? "GPU 2" : "GPU 0 and 1", communicator).value_or(-1),
              is_last ? 0 : communicator.rank());
    return communicator.Barrier();
  }));
}

TEST(ProcessNumberTest, RanksOfOneProcess_HaveOneNumber) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    EXPECT_EQ(ProcessNumberOnHost("", communicator).value_or(-1), 0);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
