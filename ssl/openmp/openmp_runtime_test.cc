// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/openmp_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "ssl/openmp/testing/openmp_constructs.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(OpenMpRuntimeTest, RegionsWithinARegionHaveOneShare_InParallel) {
  for (const int inner : {kThreads, 1}) {
    const Levels levels = RegionsInOneAnother({kThreads, inner, kThreads}, kRepetitions);
    EXPECT_THAT(levels.runs, ElementsAre(kThreads * kRepetitions, kThreads * kRepetitions, kThreads * kRepetitions));
    EXPECT_EQ(levels.in_parallel, levels.runs);
  }
}

TEST_F(OpenMpRuntimeTest, ARegionWithinOneOfOneShareHasSharesOfItsOwn) {
  const Levels second = RegionsInOneAnother({1, kThreads, kThreads}, kRepetitions);
  EXPECT_THAT(second.runs, ElementsAre(kRepetitions, kThreads * kRepetitions, kThreads * kRepetitions));
  EXPECT_THAT(second.in_parallel, ElementsAre(0, kThreads * kRepetitions, kThreads * kRepetitions));
  const Levels third = RegionsInOneAnother({1, 1, kThreads}, kRepetitions);
  EXPECT_THAT(third.runs, ElementsAre(kRepetitions, kRepetitions, kThreads * kRepetitions));
  EXPECT_THAT(third.in_parallel, ElementsAre(0, 0, kThreads * kRepetitions));
}

TEST_F(OpenMpRuntimeTest, OutsideOfRegionsThereIsOneShare) {
  EXPECT_EQ(RunsOutsideOfRegions(kRepetitions), 3 * kRepetitions);
}

TEST_F(OpenMpRuntimeTest, ANumberOfThreadsIsTheCallersOwn) {
  EXPECT_THAT(MostThreadsAfterSetting(7), ElementsAre(7, 0));
}

TEST_F(OpenMpRuntimeTest, ASharesNumberOfThreadsIsTheCallersUntilItSetsOneForItself) {
  EXPECT_THAT(MostThreadsInShares(3), ElementsAre(3, 3, 3, 10, 11, 12, 3));
}

TEST_F(OpenMpRuntimeTest, VariablesWithoutEffectAreNamed) {
  setenv("OMP_PLACES", "cores", /*replace=*/1);
  setenv("GOMP_SPINCOUNT", "1000", /*replace=*/1);
  setenv("OMP_PROC_BIND", "false", /*replace=*/1);
  EXPECT_THAT(IgnoredOpenMpVariables(), HasSubstr("GOMP_SPINCOUNT, OMP_PLACES"));
  EXPECT_THAT(IgnoredOpenMpVariables(), Not(HasSubstr("OMP_PROC_BIND")));
  unsetenv("OMP_PLACES");
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_THAT(IgnoredOpenMpVariables(), Not(HasSubstr("OMP_PLACES")));
}

// A process of its own, which exits with the number of shares: a process reads the variable once.
TEST(OpenMpRuntimeDeathTest, NoRegionHasMoreSharesThanTheThreadLimit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with_shares = [](const char* limit) {
    setenv("OMP_THREAD_LIMIT", limit, /*replace=*/1);
    std::_Exit(static_cast<int>(NumbersOfShares(kThreads).size()));
  };
  EXPECT_EXIT(exit_with_shares("3"), ExitedWithCode(3), "");
  EXPECT_EXIT(exit_with_shares("1"), ExitedWithCode(1), "");
  for (const char* const none : {"0", "-1", "2x", "many", "99999999999"}) {
    EXPECT_EXIT(exit_with_shares(none), ExitedWithCode(kThreads), "") << none;
  }
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
