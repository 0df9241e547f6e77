// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/openmp_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "ssl/openmp/testing/openmp_constructs.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// More threads than cores, so that some are late in each of the repetitions.
constexpr int kThreads = 4;
constexpr int kRepetitions = 100;

class OpenMpRuntimeTest : public ::testing::Test {
 protected:
  OpenMpRuntimeTest() { UseOwnOpenMp(); }
};

TEST_F(OpenMpRuntimeTest, ARegionRunsEachShareOnce) {
  for (int i = 0; i < kRepetitions; ++i) EXPECT_THAT(NumbersOfShares(kThreads), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(NumbersOfShares(1), ElementsAre(0));
}

TEST_F(OpenMpRuntimeTest, ADynamicLoopRunsEachIterationOnce) {
  for (int i = 0; i < kRepetitions; ++i) EXPECT_EQ(SumByDynamicLoop(kThreads, 100), 4950);
  EXPECT_EQ(SumByDynamicLoop(1, 100), 4950);
  EXPECT_EQ(SumByDynamicLoop(kThreads, 0), 0);
}

TEST_F(OpenMpRuntimeTest, AnOrderedBlockRunsInTheOrderOfIterations) {
  for (int i = 0; i < kRepetitions; ++i) {
    EXPECT_THAT(CountDownInOrder(kThreads, 9), ElementsAre(9, 8, 7, 6, 5, 4, 3, 2, 1));
  }
}

TEST_F(OpenMpRuntimeTest, ASingleBlockRunsOnceForEachTimeThatSharesComeToIt) {
  EXPECT_EQ(RunsOfSingleBlock(kThreads, kRepetitions), kRepetitions);
  EXPECT_EQ(RunsOfSingleBlock(1, kRepetitions), kRepetitions);
}

TEST_F(OpenMpRuntimeTest, EachSectionRunsOnce) {
  for (int i = 0; i < kRepetitions; ++i) EXPECT_THAT(RunsOfSections(kThreads), ElementsAre(1, 1, 1));
}

TEST_F(OpenMpRuntimeTest, CriticalSectionsOfDifferentNamesLieInOneAnother) {
  EXPECT_EQ(CountInCriticalSections(kThreads, 1000), kThreads * 1000);
}

// A share that nobody has begun is begun by another thread, while the caller waits in its own share.
TEST_F(OpenMpRuntimeTest, ABarrierIsPassedByAllSharesTogether) {
  for (int i = 0; i < kRepetitions; ++i) EXPECT_THAT(SharesSeenBehindBarrier(kThreads), Each(kThreads));
}

TEST_F(OpenMpRuntimeTest, ARegionWithinARegionHasOneShare) {
  const Nested nested = RegionInRegion(kThreads);
  EXPECT_EQ(nested.inner_shares, 1);
  EXPECT_FALSE(nested.in_parallel);
}

TEST_F(OpenMpRuntimeTest, OutsideOfRegionsThereIsOneShare) {
  EXPECT_EQ(RunsOutsideOfRegions(kRepetitions), 3 * kRepetitions);
}

TEST_F(OpenMpRuntimeTest, ANumberOfThreadsIsTheCallersOwn) {
  EXPECT_THAT(MostThreadsAfterSetting(7), ElementsAre(7, 0));
}

TEST_F(OpenMpRuntimeTest, CallersHaveTeamsOfTheirOwn) {
  std::vector<std::thread> callers;
  std::vector<long> sums(3);
  for (long& sum : sums) {
    callers.emplace_back([&sum] {
      for (int i = 0; i < kRepetitions; ++i) sum += SumByDynamicLoop(kThreads, 100);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(sums, Each(4950L * kRepetitions));
}

}  // namespace
}  // namespace ssl
