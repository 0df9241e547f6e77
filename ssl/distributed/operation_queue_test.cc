// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/operation_queue.h"

#include <ATen/record_function.h>

#include <future>
#include <memory>
#include <string>
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

std::vector<std::string>& SeenRanges() {
  static std::vector<std::string>& seen = *new std::vector<std::string>();
  return seen;
}

TEST(OperationQueue, AProfilerOfThePostingThreadSeesWhatOperationsRun) {
  OperationQueue queue;
  const auto profiler = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& range) -> std::unique_ptr<at::ObserverContext> {
        SeenRanges().push_back(range.name());
        return nullptr;
      }).scopes({at::RecordScope::USER_SCOPE}));
  const auto run = [](const char* name) {
    RECORD_USER_SCOPE(name);
    return absl::OkStatus();
  };
  EXPECT_OK(queue.Post([&] { return run("seen"); }).get());
  at::removeCallback(profiler);
  EXPECT_OK(queue.Post([&] { return run("after the profiler"); }).get());
  EXPECT_THAT(SeenRanges(), ElementsAre("seen"));
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
