// SPDX-License-Identifier: Apache-2.0
//
// What a run on a device that works behind the host says of its speed is what a stopwatch beside it says.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/hook.h"
#include "ssl/core/metric_report.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/graph_runs.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kBatch = 16;
constexpr double kClose = 0.02;
constexpr absl::Duration kHost = absl::Milliseconds(2);  // of a step, on the host

// A report, and the moment in which it came.
struct Reading {
  MetricReport report;
  absl::Time now;
};

// The test's clock, and what it has read.
struct Stopwatch {
  absl::Time Read() { return clock.Now() - test_phases; }

  ManualClock clock{absl::UnixEpoch() + absl::Hours(1)};
  absl::Duration test_phases;  // how long those took that are over
  std::vector<Reading> readings;
};

class StopwatchSink : public MetricSink {
 public:
  explicit StopwatchSink(Stopwatch* stopwatch) : stopwatch_(*stopwatch) {}

  absl::Status Write(const MetricReport& report) override {
    if (report.values.count("Speed/samples_per_sec") > 0) stopwatch_.readings.push_back({report, stopwatch_.Read()});
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  Stopwatch& stopwatch_;
};

// Gives the run the test's clock, which it moves by what the host does.
class StopwatchHook : public Hook {
 public:
  explicit StopwatchHook(Stopwatch* stopwatch) : stopwatch_(*stopwatch) {}

  absl::string_view name() const override { return "stopwatch"; }
  HookStage stage() const override { return HookStage::kTiming; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  absl::Status OnStart(StepContext& context) override {
    context.perf_stats.UseClock(stopwatch_.clock);
    context.metrics.AddSink(std::make_unique<StopwatchSink>(&stopwatch_));
    return absl::OkStatus();
  }
  absl::Status OnPhaseStart(StepContext& context) override {
    phase_begin_ = stopwatch_.clock.Now();
    if (stopwatch_.readings.empty()) stopwatch_.readings.push_back({{context.first_iteration, 0, {}}, phase_begin_});
    return absl::OkStatus();
  }
  absl::Status OnBatchStart(StepContext& context) override {
    stopwatch_.clock.Advance(kHost);
    return absl::OkStatus();
  }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (!context.state.training) stopwatch_.test_phases += stopwatch_.clock.Now() - phase_begin_;
    return absl::OkStatus();
  }

 private:
  Stopwatch& stopwatch_;
  absl::Time phase_begin_;
};

// The readings of a run of fourteen updates: its start, then its progress.
std::vector<Reading> RunTimed(const std::string& device, const std::string& step, const std::string& more = "{}") {
  Stopwatch stopwatch;
  GraphRun run;
  run.config = {kSupervisedRun, "LOG_FREQUENCY: 4", more};
  run.device = device;
  run.step = step;
  run.hook = std::make_unique<StopwatchHook>(&stopwatch);
  const LateStandin late(&stopwatch.clock, absl::Milliseconds(5));
  EXPECT_OK(TrainGraphRun(std::move(run)).status());
  return stopwatch.readings;
}

// Each window, the first one as well.
void ExpectTheStopwatchsSpeed(const std::vector<Reading>& readings) {
  ASSERT_EQ(readings.size(), 6u) << "the start, and updates 1, 2, 4, 8 and 12";
  for (size_t i = 1; i < readings.size(); ++i) {
    const MetricReport& report = readings[i].report;
    const double samples = static_cast<double>(kBatch * (report.iteration - readings[i - 1].report.iteration));
    const double seconds = absl::ToDoubleSeconds(readings[i].now - readings[i - 1].now);
    EXPECT_NEAR(report.values.at("Speed/samples_per_sec") * seconds / samples, 1.0, kClose) << report.iteration;
  }
  // The first update warms up.
  const MetricReport& last = readings.back().report;
  const double per_update = absl::ToDoubleSeconds(readings.back().now - readings[1].now) /
                            static_cast<double>(last.iteration - readings[1].report.iteration);
  const double left = last.values.at("Speed/ETA_seconds") / per_update / static_cast<double>(24 - last.iteration);
  EXPECT_NEAR(left, 1.0, kClose) << "of four epochs";
}

class StandinClockTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { StandinDevice::Install(); }
};

TEST_P(StandinClockTest, SpeedAndTimeLeft_AreThoseOfAStopwatch) {
  const std::vector<Reading> readings = RunTimed("gpu", GetParam());
  ExpectTheStopwatchsSpeed(readings);
  const std::map<std::string, double>& values = readings.back().report.values;
  EXPECT_GT(values.at("Speed/device_wait_share"), 0.9)
      << "whoever reads a value first: check_nan, the phase, the report";
  EXPECT_LT(values.at("Speed/data_wait_share"), 0.01) << "the loader is never late";
}

TEST_P(StandinClockTest, TestPhases_AreNoTimeOfTraining) {
  ExpectTheStopwatchsSpeed(RunTimed("gpu", GetParam(), "TEST_MODEL: True"));
}

INSTANTIATE_TEST_SUITE_P(Steps, StandinClockTest, ::testing::Values("standard_train_step", "graph_train_step"));

TEST(ClockTest, OnTheCpu_SpeedIsThatOfAStopwatch) {
  ExpectTheStopwatchsSpeed(RunTimed("cpu", "standard_train_step"));
  ExpectTheStopwatchsSpeed(RunTimed("cpu", "standard_train_step", "TEST_MODEL: True"));
}

}  // namespace
}  // namespace ssl
