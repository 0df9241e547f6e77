// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/key_queue.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

constexpr int64_t kDim = 3;

KeyQueue MakeQueue(int64_t size, int64_t seed = 0) {
  KeyQueue queue;
  queue.Initialize(size, kDim, seed, at::kCPU);
  return queue;
}

at::Tensor Keys(int64_t count, double value) { return at::full({count, kDim}, value, at::kFloat); }

TEST(KeyQueue, FirstRows_AreRandomAndOfUnitLength) {
  const KeyQueue queue = MakeQueue(8);
  EXPECT_EQ(queue.rows().sizes(), at::IntArrayRef({8, kDim}));
  EXPECT_TRUE(at::allclose(queue.rows().norm(2, 1), at::ones({8})));
  EXPECT_TRUE(at::equal(queue.rows(), MakeQueue(8).rows()));
  EXPECT_FALSE(at::equal(queue.rows(), MakeQueue(8, /*seed=*/1).rows()));
}

TEST(KeyQueue, Enqueue_ReplacesTheOldestInPlace) {
  KeyQueue queue = MakeQueue(6);
  const void* const memory = queue.rows().const_data_ptr();
  for (const double value : {1.0, 2.0, 3.0, 4.0}) queue.Enqueue(Keys(2, value));
  EXPECT_TRUE(at::equal(queue.rows(), at::cat({Keys(2, 4), Keys(2, 2), Keys(2, 3)})));
  EXPECT_EQ(queue.rows().const_data_ptr(), memory);
}

TEST(KeyQueue, SmallerBatch_GoesOnOverTheEnd) {
  KeyQueue queue = MakeQueue(5);
  queue.Enqueue(Keys(1, 1.0));
  queue.Enqueue(Keys(5, 2.0));
  EXPECT_TRUE(at::equal(queue.rows(), Keys(5, 2.0)));
  queue.Enqueue(Keys(3, 3.0));
  queue.Enqueue(Keys(2, 4.0));
  EXPECT_TRUE(at::equal(queue.rows(), at::cat({Keys(1, 4), Keys(3, 3), Keys(1, 4)})));
}

TEST(KeyQueue, State_GoesOnInAnotherQueue) {
  KeyQueue first = MakeQueue(4);
  KeyQueue second = MakeQueue(4, /*seed=*/1);
  first.Enqueue(Keys(3, 1.0));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(first));
  ASSERT_OK(RestoreState(second, state, "test"));
  first.Enqueue(Keys(2, 2.0));
  second.Enqueue(Keys(2, 2.0));
  EXPECT_TRUE(at::equal(first.rows(), second.rows()));
  EXPECT_EQ(HashState(first).value(), HashState(second).value());
}

// VISSL keeps a key in each column.
void CheckInitialQueue(const golden::Case& golden_case) {
  KeyQueue queue;
  queue.Initialize(golden_case.Count("queue_size"), golden_case.Count("embedding_dim"), golden_case.Int("seed"),
                   at::kCPU);
  EXPECT_TRUE(golden::Matches(queue.rows().t(), golden_case.steps[0].Expected("queue")));
}

TEST(KeyQueueGolden, FirstRowsAreVissls) {
  golden::RunCategory("rng", {{"moco_queue_init", &CheckInitialQueue}}, {"rng", "swav_queue_init", "layer_init"});
}

}  // namespace
}  // namespace ssl
