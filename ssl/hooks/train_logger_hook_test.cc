// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/train_logger_hook.h"

#include <ATen/ops/full.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainLoggerHook Hook(int64_t log_frequency) { return TrainLoggerHook(log_frequency); }

// Time is the test's.
struct TimedStep : public FakeStep {
  TimedStep() { context.perf_stats.UseClock(clock); }
  explicit TimedStep(Communicator& communicator) : FakeStep(communicator) { context.perf_stats.UseClock(clock); }
  ManualClock clock;
  bool has_begun = false;
};

// One training step of `seconds` with `loss`.
void Step(TrainLoggerHook& hook, TimedStep& step, double seconds, double loss) {
  if (!step.has_begun) {
    ASSERT_OK(hook.OnPhaseStart(step.context));
    step.has_begun = true;
  }
  step.context.loss = at::full({}, loss, at::kFloat).set_requires_grad(true);
  ASSERT_OK(hook.OnLossAndMeter(step.context));
  ++step.state.iteration;
  step.context.perf_stats.Add(StepPart::kReadSample, seconds / 4.0);
  step.clock.Advance(absl::Seconds(seconds));
  ASSERT_OK(hook.OnStep(step.context));
}

std::vector<int64_t> ReportedIterations(const FakeStep& step) {
  std::vector<int64_t> iterations;
  for (const MetricReport& report : step.sink.reports) iterations.push_back(report.iteration);
  return iterations;
}

TEST(TrainLoggerHook, Reports_AtTheFirstTwoEveryFrequencyAndTheLastStep) {
  TimedStep step;
  step.state.max_iterations = 23;
  TrainLoggerHook hook = Hook(10);

  for (int i = 0; i < 23; ++i) Step(hook, step, 0.1, 1.0);

  EXPECT_THAT(ReportedIterations(step), ElementsAre(1, 2, 10, 20, 23));
}

TEST(TrainLoggerHook, SamplesPerSecond_CountEveryBatchOfAnUpdate) {
  TimedStep step;
  step.state.max_iterations = 100;
  step.context.batch_size = 8;
  step.context.batches_per_update = 3;
  TrainLoggerHook hook = Hook(10);
  Step(hook, step, 0.5, 1.0);
  EXPECT_DOUBLE_EQ(step.sink.reports.at(0).values.at("Speed/samples_per_sec"), 48.0);
}

TEST(TrainLoggerHook, ResumedProcess_ReportsItsOwnFirstSteps) {
  TimedStep step;
  step.state.max_iterations = 100;
  step.state.iteration = step.context.first_iteration = 34;
  TrainLoggerHook hook = Hook(10);

  for (int i = 0; i < 8; ++i) Step(hook, step, 0.1, 1.0);

  EXPECT_THAT(ReportedIterations(step), ElementsAre(35, 36, 40));
}

TEST(TrainLoggerHook, Report_HoldsMeanLossRateAndSpeed) {
  TimedStep step;
  step.state.max_iterations = 100;
  step.state.iteration = 18;
  step.state.train_phase_index = 4;
  step.context.batch_size = 32;
  step.optimizer.groups()[0].learning_rate = 0.25;
  TrainLoggerHook hook = Hook(20);

  Step(hook, step, 0.5, 3.0);
  Step(hook, step, 0.3, 5.0);

  ASSERT_EQ(step.sink.reports.size(), 1u);
  const MetricReport& report = step.sink.reports[0];
  EXPECT_EQ(report.epoch, 4);
  EXPECT_DOUBLE_EQ(report.values.at("Training/Loss"), 4.0);
  EXPECT_DOUBLE_EQ(report.values.at("Training/Learning_rate"), 0.25);
  EXPECT_DOUBLE_EQ(report.values.at("Speed/samples_per_sec"), 64.0 / 0.8);
  EXPECT_DOUBLE_EQ(report.values.at("Speed/data_wait_share"), 0.25);
  EXPECT_NEAR(report.values.at("Speed/ETA_seconds"), 80 * 0.4, 1e-9);
  EXPECT_GT(report.values.at("Memory/rss_mb"), 1.0);
}

TEST(TrainLoggerHook, Times_StartAnewAfterAReport) {
  TimedStep step;
  step.state.max_iterations = 100;
  TrainLoggerHook hook = Hook(10);

  step.context.batch_size = 1;
  Step(hook, step, 0.5, 3.0);
  Step(hook, step, 0.25, 3.0);

  EXPECT_DOUBLE_EQ(step.sink.reports.at(0).values.at("Speed/samples_per_sec"), 2.0);
  EXPECT_DOUBLE_EQ(step.sink.reports.at(1).values.at("Speed/samples_per_sec"), 4.0);
}

TEST(TrainLoggerHook, TimeLeft_ForgetsTheFirstStep) {
  TimedStep step;
  step.state.max_iterations = 12;
  TrainLoggerHook hook = Hook(10);

  Step(hook, step, 60.0, 1.0);  // warms up
  for (int i = 1; i < 10; ++i) Step(hook, step, 0.5, 1.0);

  EXPECT_NEAR(step.sink.reports[0].values.at("Speed/ETA_seconds"), 11 * 60.0, 1e-9);
  EXPECT_NEAR(step.sink.reports[1].values.at("Speed/ETA_seconds"), 10 * 0.5, 1e-9);
  EXPECT_NEAR(step.sink.reports[2].values.at("Speed/ETA_seconds"), 2 * 0.5, 1e-9);
}

TEST(TrainLoggerHook, SkippedIterations_AreLeftOutOfTiming) {
  TimedStep step;
  step.state.max_iterations = 100;
  step.context.batch_size = 6;
  TrainLoggerHook hook(10, /*skip_first_k=*/5);

  for (int i = 0; i < 5; ++i) Step(hook, step, 60.0, 1.0);
  for (int i = 0; i < 5; ++i) Step(hook, step, 0.5, 1.0);

  ASSERT_EQ(step.sink.reports.size(), 3u);
  EXPECT_DOUBLE_EQ(step.sink.reports[1].values.at("Speed/samples_per_sec"), 0.1) << "there is nothing else to tell";
  EXPECT_EQ(step.sink.reports[1].values.count("Speed/step_seconds"), 0u);
  EXPECT_DOUBLE_EQ(step.sink.reports[2].values.at("Speed/samples_per_sec"), 12.0);
  EXPECT_DOUBLE_EQ(step.sink.reports[2].values.at("Speed/ETA_seconds"), 90 * 0.5);
  EXPECT_DOUBLE_EQ(step.sink.reports[2].values.at("Speed/step_seconds"), 0.5);
}

// detectron2's test_engine.py: 50 iterations of which the timer leaves out two make 48 times.
TEST(TrainLoggerHook, Times_AreThoseOfAllOtherIterations) {
  TimedStep step;
  step.state.max_iterations = 50;
  TrainLoggerHook hook(10, /*skip_first_k=*/2);
  ASSERT_OK(hook.OnStart(step.context));

  for (int i = 1; i <= 50; ++i) {
    step.metrics.set_iteration(i);
    Step(hook, step, i, 1.0);
  }

  const MetricHistory& times = *step.metrics.History(kStepSeconds);
  ASSERT_EQ(times.size(), 48);
  EXPECT_EQ(times.FromNewest(47).value, 3.0);
  EXPECT_EQ(times.FromNewest(47).iteration, 3);
  EXPECT_EQ(times.Latest().iteration, 50);
  EXPECT_EQ(step.metrics.History(kDataSeconds)->size(), 48);
  // The median of the last 20 iterations.
  EXPECT_DOUBLE_EQ(step.sink.reports.back().values.at("Speed/step_seconds"), 40.5);
}

TEST(TrainLoggerHook, StepSeconds_AreThoseOfTheSlowestRank) {
  ThreadWorld world(2, absl::Seconds(60));
  std::vector<MetricReport> reports;
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    TimedStep step(communicator);
    step.state.max_iterations = 2;
    TrainLoggerHook hook(1, /*skip_first_k=*/0);
    EXPECT_OK(hook.OnStart(step.context));
    Step(hook, step, communicator.rank() == 0 ? 1.0 : 3.0, 1.0);
    if (communicator.rank() == 0) reports = step.sink.reports;
    return absl::OkStatus();
  }));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_DOUBLE_EQ(reports[0].values.at("Speed/step_seconds"), 3.0);
  EXPECT_DOUBLE_EQ(reports[0].values.at("Speed/data_seconds"), 0.75);
}

TEST(TrainLoggerHook, Line_IsForPeople) {
  CapturedLog log;
  TimedStep step;
  step.state.max_iterations = 4000;
  step.state.train_phase_index = 0;
  step.context.num_epochs = 2;
  step.context.batch_size = 16;
  TrainLoggerHook hook = Hook(10);

  Step(hook, step, 0.5, 4.5);

  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("  0% | epoch 1/2 | step 1/4,000 | loss 4.5000 | lr 0 | 32 samples/s | data 25% "
                                      "| 33m 20s left | "));
}

TEST(TrainLoggerHook, Line_HasTheRollingBatchTimeThatPerfStatsSets) {
  CapturedLog log;
  TimedStep step;
  TrainLoggerHook hook = Hook(1);
  step.context.metrics.Set("Speed/rolling_batch_time_ms", 12.5);

  Step(hook, step, 0.5, 4.5);

  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr(" samples/s | 12.5 ms/batch | data 25% |"));
}

// The host hands out a step in 2 ms that keeps the device busy for 100: most of the time lies in the report, which
// waits.
TEST(TrainLoggerHook, OnADeviceThatIsLate_SpeedAndTimeLeftAreThoseOfAStopwatch) {
  StandinDevice::Install();
  TimedStep step;
  const LateStandin late(&step.clock, absl::Microseconds(100));
  step.state.max_iterations = 40;
  step.context.batch_size = 16;
  TrainLoggerHook hook = Hook(10);
  ASSERT_OK(hook.OnPhaseStart(step.context));
  std::vector<absl::Time> times = {step.clock.Now()};
  for (int i = 1; i <= 30; ++i) {
    step.clock.Advance(absl::Milliseconds(2));
    KeepStandinBusy(1000);
    step.context.loss = at::full({}, 1.0, at::TensorOptions(StandinDevice::device()).dtype(at::kFloat));
    ASSERT_OK(hook.OnLossAndMeter(step.context));
    ++step.state.iteration;
    ASSERT_OK(hook.OnStep(step.context));
    if (step.sink.reports.size() == times.size()) times.push_back(step.clock.Now());
  }

  ASSERT_THAT(ReportedIterations(step), ElementsAre(1, 2, 10, 20, 30));
  int64_t before = 0;
  for (size_t i = 0; i < step.sink.reports.size(); ++i) {
    const MetricReport& report = step.sink.reports[i];
    const double stopwatch = absl::ToDoubleSeconds(times[i + 1] - times[i]);
    const double said =
        16.0 * static_cast<double>(report.iteration - before) / report.values.at("Speed/samples_per_sec");
    EXPECT_NEAR(said / stopwatch, 1.0, 0.02) << report.iteration;
    EXPECT_GT(report.values.at("Speed/device_wait_share"), 0.9);
    EXPECT_LT(report.values.at("Speed/data_wait_share"), 0.01);
    before = report.iteration;
  }
  const double of_a_step = absl::ToDoubleSeconds(times[5] - times[1]) / 29.0;
  EXPECT_NEAR(step.sink.reports[4].values.at("Speed/ETA_seconds") / (10.0 * of_a_step), 1.0, 0.02);
}

TEST(TrainLoggerHook, TestPhases_AreNotReported) {
  TimedStep step;
  step.state.training = false;
  TrainLoggerHook hook = Hook(1);

  ASSERT_OK(hook.OnLossAndMeter(step.context));
  ASSERT_OK(hook.OnStep(step.context));

  EXPECT_THAT(step.sink.reports, IsEmpty());
}

TEST(TrainLoggerHook, TimeOfTestPhases_DoesNotCountAsTraining) {
  TimedStep step;
  step.state.max_iterations = 100;
  step.state.iteration = 18;
  step.context.batch_size = 10;
  TrainLoggerHook hook = Hook(20);
  Step(hook, step, 0.5, 1.0);
  {
    const TrainingPause pause(c10::kCPU, &step.context.perf_stats);
    step.state.training = false;
    ASSERT_OK(hook.OnPhaseStart(step.context));
    step.clock.Advance(absl::Seconds(630.0));
    step.context.perf_stats.Add(StepPart::kReadSample, 350.0);
    ASSERT_OK(hook.OnPhaseEnd(step.context));
  }
  step.state.training = true;
  ASSERT_OK(hook.OnPhaseStart(step.context));

  Step(hook, step, 0.25, 1.0);

  EXPECT_DOUBLE_EQ(step.sink.reports[0].values.at("Speed/samples_per_sec"), 20.0 / 0.75);
  EXPECT_DOUBLE_EQ(step.sink.reports[0].values.at("Speed/data_wait_share"), 0.25);
}

TEST(TrainLoggerHook, TwoRanks_ReportTheMeanLossOnceAndCountAllSamples) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(60));
  std::vector<MetricReport> reports_of[2];

  ASSERT_OK(world.Run([&](Communicator& communicator) {
    TimedStep step(communicator);
    step.state.max_iterations = 10;
    step.context.batch_size = 8;
    TrainLoggerHook hook = Hook(10);
    Step(hook, step, 1.0, communicator.rank() == 0 ? 1.0 : 2.0);
    reports_of[communicator.rank()] = step.sink.reports;
    return absl::OkStatus();
  }));

  ASSERT_EQ(reports_of[0].size(), 1u);
  EXPECT_DOUBLE_EQ(reports_of[0][0].values.at("Training/Loss"), 1.5);
  EXPECT_DOUBLE_EQ(reports_of[0][0].values.at("Speed/samples_per_sec"), 16.0);
  EXPECT_THAT(reports_of[1], IsEmpty());
  EXPECT_EQ(log.lines.size(), 1u);
}

TEST(TrainLoggerHook, OtherRanks_TellTheirStepEveryFiveMinutes) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(60));
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    TimedStep step(communicator);
    step.state.max_iterations = 2000;
    TrainLoggerHook hook = Hook(1);
    for (int i = 0; i < 7; ++i) Step(hook, step, 100.0, 1.0);
    return absl::OkStatus();
  }));
  std::vector<std::string> of_rank_one;
  for (const std::string& line : log.lines) {
    if (line.rfind("rank 1", 0) == 0) of_rank_one.push_back(line);
  }
  EXPECT_THAT(of_rank_one, ElementsAre("rank 1: step 3/2,000", "rank 1: step 6/2,000"));
}

TEST(TrainLoggerHook, FailingSink_IsReported) {
  TimedStep step;
  step.sink.result = absl::ResourceExhaustedError("metrics.jsonl: disk is full");
  step.context.loss = at::full({}, 1.0);
  TrainLoggerHook hook = Hook(1);
  ASSERT_OK(hook.OnLossAndMeter(step.context));
  step.state.iteration = 1;

  EXPECT_THAT(hook.OnStep(step.context), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("metrics.jsonl")));
  EXPECT_THAT(hook.OnEnd(step.context), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(TrainLoggerHook, PhaseEndAndEnd_FlushTheSinks) {
  TimedStep step;
  TrainLoggerHook hook = Hook(10);

  ASSERT_OK(hook.OnPhaseEnd(step.context));
  ASSERT_OK(hook.OnEnd(step.context));

  EXPECT_EQ(step.sink.flushes, 2);
}

}  // namespace
}  // namespace ssl
