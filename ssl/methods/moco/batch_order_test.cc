// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/batch_order.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(BatchOrder, IsAPermutation) {
  for (const int64_t count : {1, 2, 7, 64}) {
    const at::Tensor order = BatchOrder(count, 3, 1, 5);
    EXPECT_TRUE(at::equal(std::get<0>(order.sort()), at::arange(count))) << count;
  }
}

TEST(BatchOrder, FollowsFromItsArguments) {
  const at::Tensor order = BatchOrder(64, 3, 1, 5);
  EXPECT_TRUE(at::equal(BatchOrder(64, 3, 1, 5), order));
  EXPECT_FALSE(at::equal(BatchOrder(64, 4, 1, 5), order));
  EXPECT_FALSE(at::equal(BatchOrder(64, 3, 2, 5), order));
  EXPECT_FALSE(at::equal(BatchOrder(64, 3, 1, 6), order));
}

TEST(BatchOrder, EveryOrderOfThreeIsAboutEquallyFrequent) {
  constexpr int64_t kDraws = 6000;
  std::map<std::vector<int64_t>, int64_t> counts;
  for (int64_t batch = 0; batch < kDraws; ++batch) {
    const at::Tensor order = BatchOrder(3, 0, 0, batch);
    const int64_t* numbers = order.const_data_ptr<int64_t>();
    ++counts[{numbers, numbers + 3}];
  }
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& entry : counts) EXPECT_NEAR(entry.second, kDraws / 6, 150);  // five standard deviations
}

}  // namespace
}  // namespace ssl
