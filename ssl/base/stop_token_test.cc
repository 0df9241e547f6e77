// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/stop_token.h"

#include <signal.h>

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(StopTokenTest, New_IsNotRequested) {
  const StopToken stop;
  EXPECT_FALSE(stop.requested());
  EXPECT_EQ(stop.reason(), kStopNone);
}

TEST(StopTokenTest, Request_KeepsTheMostUrgentReason) {
  StopToken stop;
  stop.Request(kStopUser);
  EXPECT_TRUE(stop.requested());
  stop.Request(kStopError);
  stop.Request(kStopTerminate);
  EXPECT_EQ(stop.reason(), kStopError);
}

TEST(StopTokenTest, Request_OfNoneIsIgnored) {
  StopToken stop;
  stop.Request(kStopNone);
  stop.Request(-1);
  EXPECT_FALSE(stop.requested());
}

TEST(StopTokenTest, Snapshots_AreCountedAndStopNothing) {
  StopToken stop;
  EXPECT_EQ(stop.snapshot_requests(), 0);
  stop.RequestSnapshot();
  stop.RequestSnapshot();
  EXPECT_EQ(stop.snapshot_requests(), 2);
  EXPECT_FALSE(stop.requested());
}

TEST(StopTokenTest, ManyThreads_TheMaximumWins) {
  StopToken stop;
  std::vector<std::thread> threads;
  for (int reason = 1; reason <= 16; ++reason) {
    threads.emplace_back([&stop, reason] { stop.Request(reason); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stop.reason(), 16);
}

StopToken* signalled = nullptr;

TEST(StopTokenTest, Request_WorksInASignalHandler) {
  StopToken stop;
  signalled = &stop;
  struct sigaction action = {};
  action.sa_handler = [](int) { signalled->Request(kStopTerminate); };
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  ASSERT_EQ(raise(SIGUSR1), 0);
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(stop.reason(), kStopTerminate);
}

}  // namespace
}  // namespace ssl
