// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/operation_queue.h"

#include <future>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

TEST(OperationQueue, RunsInOrderOnOneOtherThread) {
  OperationQueue queue;
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  std::vector<std::future<absl::Status>> results;
  for (int i = 0; i < 3; ++i) {
    results.push_back(queue.Post([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
      return i == 1 ? absl::AbortedError("one") : absl::OkStatus();
    }));
  }
  EXPECT_OK(results[2].get());
  EXPECT_THAT(results[1].get(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_EQ(threads[0], threads[2]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(OperationQueue, Drain_WaitsForAll) {
  OperationQueue queue;
  queue.Drain();  // nothing was posted
  std::promise<void> go;
  int done = 0;
  queue.Post([&] {
    go.get_future().wait();
    ++done;
    return absl::OkStatus();
  });
  queue.Post([&] {
    ++done;
    return absl::OkStatus();
  });
  EXPECT_EQ(done, 0);
  go.set_value();
  queue.Drain();
  EXPECT_EQ(done, 2);
}

TEST(OperationQueue, Destructor_WaitsForTheOperationThatRuns) {
  std::promise<void> begun;
  std::promise<void> go;
  bool ended = false;
  std::thread other;
  {
    OperationQueue queue;
    queue.Post([&] {
      begun.set_value();
      go.get_future().wait();
      ended = true;
      return absl::OkStatus();
    });
    begun.get_future().wait();
    other = std::thread([&] { go.set_value(); });
  }
  EXPECT_TRUE(ended);
  other.join();
}

}  // namespace
}  // namespace ssl
