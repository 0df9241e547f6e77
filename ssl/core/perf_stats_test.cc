// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/perf_stats.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(PerfStatsTest, TableHasMeansAndSharesOfThePartsThatRan) {
  PerfStats stats;
  stats.Add(StepPart::kForward, 0.010);
  stats.Add(StepPart::kForward, 0.030);
  stats.Add(StepPart::kStepTotal, 0.040);
  stats.Add(StepPart::kStepTotal, 0.040);
  EXPECT_EQ(stats.steps(), 2);
  EXPECT_DOUBLE_EQ(stats.MeanMs(StepPart::kForward), 20.0);
  EXPECT_EQ(stats.Table(),
            "forward               20.00 ms  50.0 %\n"
            "step_total            40.00 ms 100.0 %\n");
}

TEST(PerfStatsTest, TimerCountsItsBlock) {
  PerfStats stats;
  { const PerfTimer timer(&stats, StepPart::kStepTotal); }
  EXPECT_EQ(stats.steps(), 1);
  EXPECT_GE(stats.Seconds(StepPart::kStepTotal), 0.0);
}

TEST(PerfStatsTest, ATimer_LeavesOutWhatItsBlockWaitsForOtherRanks) {
  PerfStats stats;
  WaitingTime waiting;
  waiting.Add(absl::Seconds(1));
  stats.LeaveOut(waiting);
  {
    const PerfTimer timer(&stats, StepPart::kForward);
    waiting.Add(absl::Hours(1));  // more than the block can take: what is left is below zero
  }
  EXPECT_EQ(stats.SecondsWaited(), 3601.0);
  EXPECT_LT(stats.Seconds(StepPart::kForward), 0.0);
}

TEST(PerfStatsTest, AWindow_HoldsWhatCameAfterItsBeginning) {
  PerfStats stats;
  stats.Add(StepPart::kForward, 1.0);
  stats.Add(StepPart::kStepTotal, 2.0);
  const PerfStats begin = stats;
  EXPECT_EQ(stats.Since(begin).steps(), 0);
  EXPECT_EQ(stats.Since(begin).Table(), "");

  stats.Add(StepPart::kStepTotal, 0.25);

  const PerfStats window = stats.Since(begin);
  EXPECT_EQ(window.steps(), 1);
  EXPECT_DOUBLE_EQ(window.Seconds(StepPart::kStepTotal), 0.25);
  EXPECT_DOUBLE_EQ(window.MeanMs(StepPart::kForward), 0.0);
}

}  // namespace
}  // namespace ssl
