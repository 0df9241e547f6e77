// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/perf_stats_hook.h"

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

PerfStatsHook Hook(bool monitor, int64_t frequency, int64_t rolling) {
  PerfStatsOptions options;
  options.monitor_perf_stats = monitor;
  options.perf_stat_frequency = frequency;
  options.rolling_btime_freq = rolling;
  return PerfStatsHook(options);
}

TEST(PerfStatsHookTest, ThePlan_CountsBatchesOfAPhase) {
  const std::vector<PlannedAction> plan = Hook(/*monitor=*/true, /*frequency=*/10, /*rolling=*/-1).Plan();
  ASSERT_EQ(plan.size(), 1);
  EXPECT_EQ(plan[0].what, "tells the times of its steps, and within it those of every 10 batches so far");
  EXPECT_EQ(plan[0].when.unit, Cadence::Unit::kEpoch);
}

// Time is the test's.
struct TimedStep : public FakeStep {
  TimedStep() { context.perf_stats.UseClock(clock); }
  explicit TimedStep(Communicator& communicator) : FakeStep(communicator) { context.perf_stats.UseClock(clock); }
  ManualClock clock;
};

void StartPhase(PerfStatsHook& hook, FakeStep& step, bool training = true) {
  step.state.training = training;
  ASSERT_OK(hook.OnPhaseStart(step.context));
}

// A step that took `seconds`, a quarter of it in backward.
void Step(PerfStatsHook& hook, TimedStep& step, double seconds) {
  step.clock.Advance(absl::Seconds(seconds));
  step.context.perf_stats.Add(StepPart::kBackward, seconds / 4.0);
  step.context.perf_stats.Add(StepPart::kStepTotal, seconds);
  ASSERT_OK(hook.OnStep(step.context));
}

double RollingMs(FakeStep& step) {
  return step.context.metrics.Report(0, 0, step.context.communicator)->values.at("Speed/rolling_batch_time_ms");
}

TEST(PerfStatsHook, Table_ComesEveryFrequencyAndAtTheEndOfAPhase) {
  TimedStep step;
  PerfStatsHook hook = Hook(true, 2, -1);
  CapturedLog log;
  StartPhase(hook, step);

  for (const double seconds : {0.1, 0.3, 0.2, 0.2, 0.2}) Step(hook, step, seconds);
  ASSERT_OK(hook.OnPhaseEnd(step.context));

  EXPECT_THAT(log.lines, ElementsAre(StartsWith("Average train batch time (ms) for 2 batches: 200.00\n"),
                                     StartsWith("Average train batch time (ms) for 4 batches: 200.00\n"),
                                     StartsWith("Average train batch time (ms) for 5 batches: 200.00\n")));
  EXPECT_THAT(log.lines[2], HasSubstr(step.context.perf_stats.Table()));
  EXPECT_THAT(log.lines[0], HasSubstr("backward"));
}

TEST(PerfStatsHook, WithoutFrequency_TheTableComesAtPhaseEnds) {
  TimedStep step;
  PerfStatsHook hook = Hook(true, -1, -1);
  CapturedLog log;
  for (int phase = 0; phase < 2; ++phase) {
    StartPhase(hook, step);
    for (int i = 0; i < 3; ++i) Step(hook, step, 0.1 * (phase + 1));
    ASSERT_OK(hook.OnPhaseEnd(step.context));
  }
  EXPECT_THAT(log.lines, ElementsAre(StartsWith("Average train batch time (ms) for 3 batches: 100.00\n"),
                                     StartsWith("Average train batch time (ms) for 3 batches: 200.00\n")));
}

TEST(PerfStatsHook, UpdatesOfSeveralBatches_CountTheirBatches) {
  TimedStep step;
  step.context.batches_per_update = 3;
  PerfStatsHook hook = Hook(true, 4, 1);
  CapturedLog log;
  StartPhase(hook, step);

  for (int i = 0; i < 3; ++i) Step(hook, step, 0.6);

  EXPECT_THAT(log.lines, ElementsAre(StartsWith("Average train batch time (ms) for 6 batches: 200.00\n"),
                                     StartsWith("Average train batch time (ms) for 9 batches: 200.00\n")));
  EXPECT_NEAR(RollingMs(step), 200.0, 1e-6);
}

TEST(PerfStatsHook, TestPhasesAndEmptyPhases_AreNotReported) {
  TimedStep step;
  PerfStatsHook hook = Hook(true, 1, 5);
  CapturedLog log;
  StartPhase(hook, step, /*training=*/false);
  Step(hook, step, 0.1);
  ASSERT_OK(hook.OnPhaseEnd(step.context));
  StartPhase(hook, step, /*training=*/true);
  ASSERT_OK(hook.OnPhaseEnd(step.context));

  EXPECT_THAT(log.lines, IsEmpty());
  EXPECT_THAT(step.context.metrics.Report(0, 0, step.context.communicator)->values, IsEmpty());
}

TEST(PerfStatsHook, RollingTime_IsTheMeanOfTheLastStepsAcrossPhases) {
  TimedStep step;
  PerfStatsHook hook = Hook(false, 1, 3);
  CapturedLog log;
  StartPhase(hook, step);
  Step(hook, step, 0.1);
  EXPECT_NEAR(RollingMs(step), 100.0, 1e-6);
  Step(hook, step, 0.3);
  EXPECT_NEAR(RollingMs(step), 200.0, 1e-6);
  {
    const TrainingPause pause(c10::kCPU, &step.context.perf_stats);
    StartPhase(hook, step, /*training=*/false);
    Step(hook, step, 9.0);
  }
  StartPhase(hook, step);
  Step(hook, step, 0.5);
  EXPECT_NEAR(RollingMs(step), 300.0, 1e-6);
  Step(hook, step, 0.7);
  EXPECT_NEAR(RollingMs(step), 500.0, 1e-6);
  Step(hook, step, 0.9);
  EXPECT_NEAR(RollingMs(step), 700.0, 1e-6);

  ASSERT_OK(hook.OnPhaseEnd(step.context));
  EXPECT_THAT(log.lines, IsEmpty()) << "the table is off";
}

// A report in OnStep waits for the device: that is time of the batches before it.
TEST(PerfStatsHook, WaitsBetweenSteps_AreTimeOfTheBatches) {
  TimedStep step;
  PerfStatsHook hook = Hook(true, 2, 2);
  CapturedLog log;
  StartPhase(hook, step);
  Step(hook, step, 0.1);
  step.clock.Advance(absl::Seconds(0.3));
  Step(hook, step, 0.1);
  EXPECT_NEAR(RollingMs(step), 250.0, 1e-6);
  EXPECT_THAT(log.lines, ElementsAre(StartsWith("Average train batch time (ms) for 2 batches: 250.00\n")));
}

TEST(PerfStatsHook, RankZeroAlone_WritesTheTable) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(60));

  ASSERT_OK(world.Run([](Communicator& communicator) {
    TimedStep step(communicator);
    PerfStatsHook hook = Hook(true, 1, -1);
    StartPhase(hook, step);
    Step(hook, step, communicator.rank() == 0 ? 0.1 : 0.2);
    return absl::OkStatus();
  }));

  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("for 1 batches: 100.00")));
}

TEST(PerfStatsHook, Metric_IsSetBeforeTheLoggerReports) { EXPECT_LT(Hook(true, 1, 1).stage(), HookStage::kReport); }

}  // namespace
}  // namespace ssl
