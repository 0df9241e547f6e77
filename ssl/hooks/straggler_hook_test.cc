// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/straggler_hook.h"

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

StragglerOptions Options(double factor) {
  StragglerOptions options;
  options.frequency = 2;
  options.factor = factor;
  return options;
}

// An update in which the rank reads for `read` seconds, computes for `forward`, and waits for `wait`.
absl::Status Update(StragglerHook& hook, FakeStep& step, double read, double forward, double wait) {
  PerfStats& stats = step.context.perf_stats;
  stats.Add(StepPart::kReadSample, read);
  stats.Add(StepPart::kForward, forward);
  stats.Add(StepPart::kWaitForRanks, wait);
  stats.Add(StepPart::kStepTotal, read + forward + wait);
  ++step.state.iteration;
  return hook.OnStep(step.context);
}

std::map<std::string, double> Report(FakeStep& step) {
  const absl::StatusOr<MetricReport> report = step.metrics.Report(0, 0, step.context.communicator);
  EXPECT_OK(report);
  return report.ok() ? report->values : std::map<std::string, double>();
}

TEST(StragglerHook, TwoRanks_AreComparedByWhatTheyWorkNotByWhatTheyWait) {
  std::vector<std::map<std::string, double>> values(2);
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(30));
  // Rank 0 works 100 ms and waits 200; rank 1 works 300, mostly to read. Both take 300 ms in all.
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    StragglerHook hook(Options(1.25));
    FakeStep step(communicator);
    const bool is_slow = communicator.rank() == 1;
    for (int i = 0; i < 2; ++i) {
      const absl::Status status =
          Update(hook, step, is_slow ? 0.1875 : 0.0625, is_slow ? 0.0625 : 0.0625, is_slow ? 0.0 : 0.125);
      if (!status.ok()) return status;
    }
    values[communicator.rank()] = Report(step);
    return absl::OkStatus();
  }));
  EXPECT_THAT(values[0], ElementsAre(Pair("Speed/rank_work_ms_max", DoubleEq(250.0)),
                                     Pair("Speed/rank_work_ms_mean", DoubleEq(187.5)), Pair("Speed/slowest_rank", 1.0),
                                     Pair("Speed/straggler_ratio", DoubleEq(2.0))));
  EXPECT_EQ(values[0], values[1]);
  EXPECT_THAT(log.warnings, ElementsAre(AllOf(HasSubstr("iteration 2: rank 1 works 250.0 ms"),
                                              HasSubstr("2.00 times the median of 2 ranks"),
                                              HasSubstr("loses most in reading batches (62.5 ms more"))));
}

TEST(StragglerHook, RanksWithinTheFactor_AreNotWarnedOf) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    StragglerHook hook(Options(1.5));
    FakeStep step(communicator);
    const double work = communicator.rank() == 1 ? 0.375 : 0.25;  // 1.5 times the median, not above
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = Update(hook, step, 0.0, work, 0.0);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(log.warnings, IsEmpty());
}

// The machine was busy, or saved, for a moment.
TEST(StragglerHook, AnUpdateThatWasHeldUp_MakesNoRankSlow) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    StragglerOptions options = Options(4.0 / 3.0);
    options.frequency = 5;
    StragglerHook hook(options);
    FakeStep step(communicator);
    for (int i = 0; i < 5; ++i) {
      const double held_up = communicator.rank() == 1 && i == 2 ? 8.0 : 0.0;
      const absl::Status status = Update(hook, step, held_up, 0.25, 0.0);
      if (!status.ok()) return status;
    }
    EXPECT_EQ(Report(step).at("Speed/straggler_ratio"), 1.0);
    return absl::OkStatus();
  }));
  EXPECT_THAT(log.warnings, IsEmpty());
}

TEST(StragglerHook, Window_IsOfTheUpdatesSinceTheLastReport) {
  StragglerHook hook(Options(1.5));
  FakeStep step;
  ASSERT_OK(Update(hook, step, 0.0, 1.0, 0.0));
  EXPECT_THAT(Report(step), IsEmpty());
  ASSERT_OK(Update(hook, step, 0.0, 1.0, 0.0));
  EXPECT_DOUBLE_EQ(Report(step).at("Speed/rank_work_ms_mean"), 1000.0);
  ASSERT_OK(Update(hook, step, 0.0, 0.25, 0.0));
  ASSERT_OK(Update(hook, step, 0.0, 0.25, 0.0));
  const std::map<std::string, double> values = Report(step);
  EXPECT_DOUBLE_EQ(values.at("Speed/rank_work_ms_mean"), 250.0);
  EXPECT_EQ(values.at("Speed/straggler_ratio"), 1.0) << "a world of one is as fast as its slowest";

  step.context.perf_stats.Add(StepPart::kStepTotal, 50.0);  // a test phase
  ASSERT_OK(hook.OnPhaseStart(step.context));
  ASSERT_OK(Update(hook, step, 0.0, 0.5, 0.0));
  ASSERT_OK(Update(hook, step, 0.0, 0.5, 0.0));
  EXPECT_DOUBLE_EQ(Report(step).at("Speed/rank_work_ms_mean"), 500.0);
}

}  // namespace
}  // namespace ssl
