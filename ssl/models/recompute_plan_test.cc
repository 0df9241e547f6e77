// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/recompute_plan.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Blocks "<letter>.0", "<letter>.1" ... that save these bytes.
std::vector<BlockCost> Saving(const std::string& letter, const std::vector<int64_t>& saved) {
  std::vector<BlockCost> blocks;
  for (size_t i = 0; i < saved.size(); ++i) blocks.push_back({letter + "." + std::to_string(i), saved[i], 0, 1.0, 0});
  return blocks;
}

// What United Perception's code gives for these numbers.
TEST(RecomputePlanTest, Greedy_TakesTheSmallestThatSuffices) {
  const std::vector<BlockCost> falling = Saving("l", {10, 8, 5, 3});
  EXPECT_THAT(PlanGreedily(falling, 9), ElementsAre(0));
  EXPECT_THAT(PlanGreedily(falling, 20), ElementsAre(0, 1, 2, 3)) << "26, where 21 would do";
  const std::vector<BlockCost> alike = Saving("b", {100, 95, 91, 89});
  EXPECT_THAT(PlanGreedily(alike, 90), ElementsAre(0));
  EXPECT_THAT(PlanGreedily(alike, 200), ElementsAre(0, 1, 3)) << "284";
  EXPECT_THAT(PlanGreedily(alike, 0), IsEmpty());
  EXPECT_THAT(PlanGreedily(alike, 1000), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(PlanGreedily(Saving("z", {0, 0}), 5), ElementsAre(0, 1)) << "nothing to save";
}

TEST(RecomputePlanTest, Peak_IsBeforeOrWithinBackward) {
  const std::vector<BlockCost> blocks = {{"a", 10, 2, 1.0, 0}, {"b", 20, 3, 1.0, 0}, {"c", 4, 4, 1.0, 0}};
  EXPECT_EQ(PredictPeak(blocks, {}), 34);
  EXPECT_EQ(PredictPeak(blocks, {0}), 2 + 20 + 4);
  EXPECT_EQ(PredictPeak(blocks, {1}), 10 + 20) << "when b runs again";
  EXPECT_EQ(PredictPeak(blocks, {0, 1}), 2 + 20);
  EXPECT_EQ(PredictPeak({{"a", 10, 2, 1.0, 50}, {"b", 20, 3, 1.0, 25}}, {}), 50) << "the gradients of a";
  EXPECT_DOUBLE_EQ(PredictSeconds(blocks, {0, 2}), 2.0);
}

TEST(RecomputePlanTest, Optimal_WithoutRoomIsAllBlocks) {
  const std::vector<BlockCost> blocks = {{"a", 10, 2, 1.0, 0}, {"b", 20, 3, 1.0, 0}};
  EXPECT_THAT(PlanOptimally(blocks, 5), ElementsAre(0, 1));
  EXPECT_THAT(PlanOptimally(blocks, 0), ElementsAre(0, 1));
  EXPECT_THAT(PlanOptimally(blocks, -7), ElementsAre(0, 1));
  EXPECT_THAT(PlanOptimally(blocks, 30), IsEmpty());
  EXPECT_THAT(PlanOptimally({}, 30), IsEmpty());
}

class DrawnInstances : public ::testing::Test {
 protected:
  static constexpr int kInstances = 1000;

  // Up to ten blocks of up to `most` bytes.
  std::vector<BlockCost> Draw(int64_t most) {
    std::vector<BlockCost> blocks(Between(1, 10));
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t bytes = Between(0, most);
      blocks[i] = {"block." + std::to_string(i), bytes, Between(0, bytes), static_cast<double>(Between(0, 100)) / 10,
                   Between(0, 2 * bytes)};
    }
    return blocks;
  }
  int64_t Between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  // Calls visit for each subset of `blocks`.
  template <class Visit>
  void ForEachSet(const std::vector<BlockCost>& blocks, const Visit& visit) {
    for (size_t bits = 0; bits < (size_t{1} << blocks.size()); ++bits) {
      RecomputeSet set;
      for (size_t i = 0; i < blocks.size(); ++i) {
        if ((bits >> i & 1) != 0) set.push_back(i);
      }
      visit(set);
    }
  }

  static int64_t Saved(const std::vector<BlockCost>& blocks, const RecomputeSet& set) {
    int64_t saved = 0;
    for (const size_t i : set) saved += blocks[i].bytes - blocks[i].kept_bytes;
    return saved;
  }

  std::mt19937_64 random_{20261122};
};

TEST_F(DrawnInstances, Optimal_IsTheBestOfAllSets) {
  int feasible = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    SCOPED_TRACE(instance);
    const std::vector<BlockCost> blocks = Draw(300);
    const int64_t budget = Between(0, PredictPeak(blocks, {}));
    double best = std::numeric_limits<double>::infinity();
    int64_t least_peak = std::numeric_limits<int64_t>::max();
    ForEachSet(blocks, [&](const RecomputeSet& set) {
      const int64_t peak = PredictPeak(blocks, set);
      least_peak = std::min(least_peak, peak);
      if (peak <= budget) best = std::min(best, PredictSeconds(blocks, set));
    });
    const RecomputeSet plan = PlanOptimally(blocks, budget);
    if (least_peak > budget) {
      EXPECT_EQ(PredictPeak(blocks, plan), least_peak);
      continue;
    }
    ++feasible;
    EXPECT_LE(PredictPeak(blocks, plan), budget);
    EXPECT_NEAR(PredictSeconds(blocks, plan), best, 1e-9);
  }
  EXPECT_GT(feasible, kInstances / 4);
}

TEST_F(DrawnInstances, MemoryAndTime_IsTheBestThatSavesEnough) {
  for (int instance = 0; instance < kInstances; ++instance) {
    SCOPED_TRACE(instance);
    const std::vector<BlockCost> blocks = Draw(300);
    const int64_t need =
        Between(0, Saved(blocks, PlanByMemoryAndTime(blocks, std::numeric_limits<int64_t>::max() / 2)));
    double best = std::numeric_limits<double>::infinity();
    ForEachSet(blocks, [&](const RecomputeSet& set) {
      if (Saved(blocks, set) >= need) best = std::min(best, PredictSeconds(blocks, set));
    });
    const RecomputeSet plan = PlanByMemoryAndTime(blocks, need);
    EXPECT_GE(Saved(blocks, plan), need);
    EXPECT_NEAR(PredictSeconds(blocks, plan), best, 1e-9);
  }
}

// At the memory that the others reach, it takes no more time than they do.
TEST_F(DrawnInstances, Optimal_IsNeverWorseThanTheOthers) {
  for (int instance = 0; instance < kInstances; ++instance) {
    SCOPED_TRACE(instance);
    const std::vector<BlockCost> blocks = Draw(300);
    const int64_t need = Between(0, PredictPeak(blocks, {}));
    for (const RecomputeSet& other : {PlanGreedily(blocks, need), PlanByMemoryAndTime(blocks, need)}) {
      const RecomputeSet ours = PlanOptimally(blocks, PredictPeak(blocks, other));
      EXPECT_LE(PredictPeak(blocks, ours), PredictPeak(blocks, other));
      EXPECT_LE(PredictSeconds(blocks, ours), PredictSeconds(blocks, other) + 1e-9);
    }
  }
}

// Sizes as they are, where bytes are rounded: the limit holds all the same, and little time is lost by rounding.
TEST_F(DrawnInstances, Optimal_HoldsTheLimitOfLargeSizes) {
  for (int instance = 0; instance < 100; ++instance) {
    SCOPED_TRACE(instance);
    const std::vector<BlockCost> blocks = Draw(int64_t{1} << 32);
    const RecomputeSet all = PlanOptimally(blocks, 0);
    const int64_t budget = PredictPeak(blocks, all) + PredictPeak(blocks, {}) / 4;
    const RecomputeSet plan = PlanOptimally(blocks, budget);
    EXPECT_LE(PredictPeak(blocks, plan), budget);
    const RecomputeSet tighter = PlanOptimally(blocks, budget - budget / 512);
    EXPECT_LE(PredictSeconds(blocks, plan), PredictSeconds(blocks, tighter) + 1e-9);
  }
}

}  // namespace
}  // namespace ssl
