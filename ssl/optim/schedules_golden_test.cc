// SPDX-License-Identifier: Apache-2.0
//
// Schedules and automatic learning rate scaling against the values of ClassyVision and VISSL.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/optim/lr_scaling.h"
#include "ssl/optim/schedules.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// Of a case that does not tell.
constexpr int64_t kUsualEpochs = 100;

// A schedule as the original library gets it may carry the length of training itself; ours stands in OPTIMIZER.
constexpr char kNumEpochs[] = "num_epochs";

// The length of training of a case: the schedule's own, else the case's.
int64_t EpochsOf(const golden::Case& golden_case, const ConfigNode& schedule) {
  const ConfigNode* const own = schedule.Find(kNumEpochs);
  return own == nullptr ? golden_case.Int(kNumEpochs, kUsualEpochs) : own->AsInt().value_or(-1);
}

ConfigNode WithoutEpochs(const ConfigNode& schedule) {
  if (schedule.is_list()) {
    ConfigNode list = ConfigNode::List();
    for (const ConfigNode& item : schedule.items()) list.Append(WithoutEpochs(item));
    return list;
  }
  if (!schedule.is_map()) return schedule;
  ConfigNode map = ConfigNode::Map();
  for (const auto& [key, value] : schedule.entries()) {
    if (key != kNumEpochs) map.Set(key, WithoutEpochs(value));
  }
  return map;
}

// The schedule that the case is about.
const ConfigNode& ScheduleOf(const golden::Case& golden_case) {
  return golden_case.Param(golden_case.op == "lr_scaling" || golden_case.op == "lr_scaling_error" ? "lr" : "config");
}

// All schedules of a run know one length of training.
std::string LimitOf(const golden::Case& golden_case) {
  const ConfigNode& schedule = ScheduleOf(golden_case);
  const int64_t num_epochs = EpochsOf(golden_case, schedule);
  const ConfigNode* const parts = schedule.Find("schedulers");
  if (parts == nullptr) return "";
  for (const ConfigNode& part : parts->items()) {
    if (EpochsOf(golden_case, part) != num_epochs && part.Find(kNumEpochs) != nullptr) {
      return "a part with another num_epochs";
    }
  }
  return "";
}

ConfigNode ConfigWithEpochs(int64_t num_epochs) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(num_epochs));
  return config;
}

absl::StatusOr<std::unique_ptr<Schedule>> Make(const ConfigNode& params, int64_t num_epochs) {
  TestRun run(ConfigWithEpochs(num_epochs));
  return run.MakeSchedule(WithoutEpochs(params));
}

void ExpectValues(const Schedule& schedule, const golden::Step& step) {
  const std::vector<double> where = golden::ListOf(step.Expected("where"));
  const std::vector<double> values = golden::ListOf(step.Expected("values"));
  ASSERT_EQ(where.size(), values.size());
  for (size_t i = 0; i < where.size(); ++i) {
    EXPECT_NEAR(schedule.ValueAt(where[i]), values[i], 1e-9 * std::abs(values[i]) + 1e-12) << "where " << where[i];
  }
}

void CheckSchedule(const golden::Case& golden_case) {
  const ConfigNode& config = ScheduleOf(golden_case);
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(config, EpochsOf(golden_case, config)));
  ExpectValues(*schedule, golden_case.steps[0]);
  const bool each_step = golden_case.steps[0].Expected("update_interval").value.text() == "step";
  EXPECT_EQ(schedule->update_interval() == Schedule::UpdateInterval::kStep, each_step);
}

void CheckScheduleError(const golden::Case& golden_case) {
  const ConfigNode& config = ScheduleOf(golden_case);
  EXPECT_THAT(Make(config, EpochsOf(golden_case, config)), StatusIs(absl::StatusCode::kInvalidArgument));
}

void CheckTrace(const golden::Case& golden_case) {
  const ConfigNode& config = ScheduleOf(golden_case);
  const int64_t num_epochs = EpochsOf(golden_case, config);
  const int64_t steps = golden_case.Int("iterations_per_epoch");
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(config, num_epochs));
  const std::vector<double> expected = golden::ListOf(golden_case.steps[0].Expected("lr"));
  ASSERT_EQ(expected.size(), static_cast<size_t>(num_epochs * steps));
  double rate = 0.0;
  for (int64_t i = 0; i < num_epochs * steps; ++i) {
    if (i % steps == 0 || schedule->update_interval() == Schedule::UpdateInterval::kStep) {
      rate = schedule->ValueAt(static_cast<double>(i) / static_cast<double>(num_epochs * steps));
    }
    EXPECT_NEAR(rate, expected[i], 1e-9 * std::abs(expected[i]) + 1e-12) << "iteration " << i;
  }
}

ConfigNode ScalingConfig(const golden::Case& golden_case) {
  ConfigNode config = ConfigWithEpochs(EpochsOf(golden_case, ScheduleOf(golden_case)));
  config.SetPath("OPTIMIZER.param_schedulers.lr", WithoutEpochs(ScheduleOf(golden_case)));
  if (const ConfigNode* head = golden_case.params.Find("lr_head"); head != nullptr) {
    config.SetPath("OPTIMIZER.param_schedulers.lr_head", WithoutEpochs(*head));
    config.SetPath("OPTIMIZER.head_optimizer_params.use_different_lr", ConfigNode::FromBool(true));
  }
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", golden_case.Param("batch_size_per_replica"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", golden_case.Param("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", golden_case.Param("num_nodes"));
  return config;
}

// Every scalar of the expected schedule, and of its parts, stands in the resolved one.
void ExpectSameSettings(const ConfigNode& actual, const ConfigNode& expected) {
  for (const auto& [key, value] : expected.entries()) {
    const ConfigNode* found = actual.Find(key);
    if (value.is_list() && value.items().empty()) continue;  // VISSL adds empty lists
    if (key == kNumEpochs) continue;
    ASSERT_NE(found, nullptr) << key;
    if (value.is_map()) {
      ExpectSameSettings(*found, value);
    } else if (key == "schedulers") {
      ASSERT_EQ(found->items().size(), value.items().size());
      for (size_t i = 0; i < value.items().size(); ++i) ExpectSameSettings(found->items()[i], value.items()[i]);
    } else if (value.AsDouble().ok()) {
      ASSERT_OK_AND_ASSIGN(const double number, found->AsDouble());
      EXPECT_NEAR(number, *value.AsDouble(), 1e-12) << key;
    } else if (value.is_scalar()) {
      EXPECT_EQ(found->text(), value.text()) << key;
    }
  }
}

void CheckScaling(const golden::Case& golden_case) {
  ConfigNode config = ScalingConfig(golden_case);
  ASSERT_OK(ResolveLearningRateScaling(&config));

  const golden::Step& step = golden_case.steps[0];
  const ConfigNode& resolved = *config.FindPath("OPTIMIZER.param_schedulers.lr");
  ExpectSameSettings(resolved, step.Expected("config").value);
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(resolved, EpochsOf(golden_case, ScheduleOf(golden_case))));
  ExpectValues(*schedule, step);
  if (step.outputs.count("config_head") > 0) {
    const ConfigNode* const head = config.FindPath("OPTIMIZER.param_schedulers.lr_head");
    ASSERT_NE(head, nullptr);
    ExpectSameSettings(*head, step.Expected("config_head").value);
  }
}

void CheckScalingError(const golden::Case& golden_case) {
  ConfigNode config = ScalingConfig(golden_case);
  EXPECT_THAT(ResolveLearningRateScaling(&config), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SchedulesGolden, ValuesIntervalsErrorsAndScalingMatch) {
  golden::RunCategory("schedules",
                      {{"lr_scaling", &CheckScaling},
                       {"lr_scaling_error", &CheckScalingError},
                       {"lr_trace", &CheckTrace},
                       {"schedule", &CheckSchedule},
                       {"schedule_error", &CheckScheduleError}},
                      {}, &LimitOf);
}

}  // namespace
}  // namespace ssl
