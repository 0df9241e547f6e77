// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/thread_pool.h"

#include <atomic>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(ThreadPoolTest, Destructor_RunsEverythingThatWasScheduled) {
  constexpr int kTasks = 1000;
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3);
    for (int i = 0; i < kTasks; ++i) pool.Schedule([&] { ++ran; });
  }
  EXPECT_EQ(ran, kTasks);
}

TEST(ThreadPoolTest, OneThread_KeepsTheOrder) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Schedule([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(ThreadPoolTest, Threads_RunAtTheSameTime) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  // Each task waits for the others: fewer threads would never finish.
  absl::BlockingCounter done(kThreads);
  auto* barrier = new absl::Barrier(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    pool.Schedule([&done, barrier] {
      if (barrier->Block()) delete barrier;
      done.DecrementCount();
    });
  }
  done.Wait();
  EXPECT_EQ(pool.size(), kThreads);
}

TEST(ThreadPoolTest, Schedule_FromATask) {
  std::atomic<bool> ran{false};
  {
    ThreadPool pool(1);
    absl::BlockingCounter scheduled(1);
    pool.Schedule([&] {
      pool.Schedule([&] { ran = true; });
      scheduled.DecrementCount();
    });
    scheduled.Wait();
  }
  EXPECT_TRUE(ran);
}

TEST(ThreadPoolTest, NoThreads_CountsAsOne) {
  ThreadPool pool(0);
  absl::BlockingCounter done(1);
  pool.Schedule([&] { done.DecrementCount(); });
  done.Wait();
  EXPECT_EQ(pool.size(), 1);
}

}  // namespace
}  // namespace ssl
