// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/parallel_for.h"

#include <ATen/Parallel.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

class ParallelForTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { at::set_num_threads(GetParam()); }
  void TearDown() override { at::set_num_threads(before_); }

 private:
  const int before_ = at::get_num_threads();
};

TEST_P(ParallelForTest, ThreadsShareTheWork) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  ParallelFor(4, [&](int64_t, int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_THAT(threads, SizeIs(GetParam()));
}

TEST_P(ParallelForTest, EachIsMetOnce) {
  for (const size_t count : {0, 1, 2, 3, 1000}) {
    std::vector<int> met(count);
    ParallelFor(static_cast<int64_t>(count), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) ++met[static_cast<size_t>(i)];
    });
    EXPECT_THAT(met, Each(1)) << count;
  }
}

TEST_P(ParallelForTest, WithinABodyIsOneCall) {
  std::vector<int> calls(4);
  ParallelFor(4, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      ParallelFor(100, [&](int64_t, int64_t) { ++calls[static_cast<size_t>(i)]; });
    }
  });
  EXPECT_THAT(calls, Each(1));
}

TEST_P(ParallelForTest, ThrowsWhatABodyThrows) {
  const auto last_part_fails = [](int64_t, int64_t last) {
    if (last == 4) throw std::runtime_error("no");
  };
  EXPECT_THROW(ParallelFor(4, last_part_fails), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelForTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace ssl
