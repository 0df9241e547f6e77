// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/system_stats_hook.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::StartsWith;

SystemStatsOptions Every(int64_t frequency) {
  SystemStatsOptions options;
  options.frequency = frequency;
  return options;
}

// What the hook has set at `iteration`.
std::map<std::string, double> ValuesAt(SystemStatsHook& hook, FakeStep& step, int64_t iteration) {
  step.state.iteration = iteration;
  EXPECT_OK(hook.OnStep(step.context));
  const absl::StatusOr<MetricReport> report = step.metrics.Report(iteration, 0, step.context.communicator);
  EXPECT_OK(report);
  return report.ok() ? report->values : std::map<std::string, double>();
}

TEST(SystemStatsHook, Looks_ComeEveryFewIterationsAndTellTheMachine) {
  SystemStatsHook hook(Every(3), MakeTempDir("system_stats"));
  FakeStep step;
  CapturedLog log;
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_THAT(ValuesAt(hook, step, 2), IsEmpty());
  const std::map<std::string, double> values = ValuesAt(hook, step, 3);
  EXPECT_THAT(values, SizeIs(7));
  EXPECT_GT(values.at("System/memory_used_gb"), 0.0);
  EXPECT_THAT(values.at("System/memory_used_percent"), AllOf(Gt(0.0), Le(100.0)));
  EXPECT_THAT(values.at("System/swap_used_percent"), AllOf(Ge(0.0), Le(100.0)));
  EXPECT_THAT(values.at("System/cpu_percent"), AllOf(Ge(0.0), Le(100.0)));
  EXPECT_GT(values.at("System/process_gb"), 0.0);
  EXPECT_LT(values.at("System/process_gb"), values.at("System/memory_used_gb") + 1.0);
  EXPECT_GE(values.at("System/threads"), 1.0);
  EXPECT_GT(values.at("System/disk_free_gb"), 0.0);
  EXPECT_THAT(log.lines, ElementsAre(StartsWith("system: memory ")));
}

TEST(SystemStatsHook, RunWithoutFiles_TellsNothingOfADisk) {
  SystemStatsHook hook(Every(1), "");
  FakeStep step;
  EXPECT_EQ(ValuesAt(hook, step, 1).count("System/disk_free_gb"), 0u);
  step.state.training = false;
  EXPECT_THAT(ValuesAt(hook, step, 1), IsEmpty()) << "a test phase";
}

}  // namespace
}  // namespace ssl
