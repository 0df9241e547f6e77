// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transform_scratch.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

struct Lines {
  std::vector<int> values;
};
struct Sums {
  int value = 7;
};

TEST(TransformScratch, TypeIsMadeOnceAndKept) {
  TransformScratch scratch;
  scratch.Get<Lines>().values = {1, 2, 3};
  EXPECT_EQ(scratch.Get<Sums>().value, 7);
  scratch.Get<Sums>().value = 8;
  EXPECT_EQ(scratch.Get<Lines>().values, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(scratch.Get<Sums>().value, 8);
}

TEST(TransformScratch, TwoWorkers_ShareNothing) {
  TransformScratch one;
  TransformScratch other;
  one.Get<Sums>().value = 1;
  EXPECT_EQ(other.Get<Sums>().value, 7);
}

TEST(TransformScratch, MovedScratch_KeepsItsObjects) {
  TransformScratch one;
  const Sums* const sums = &one.Get<Sums>();
  TransformScratch other = std::move(one);
  EXPECT_EQ(&other.Get<Sums>(), sums);
}

}  // namespace
}  // namespace ssl
