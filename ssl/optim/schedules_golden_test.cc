// SPDX-License-Identifier: Apache-2.0
//
// Schedules and automatic learning rate scaling against the values of ClassyVision and VISSL.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/optim/lr_scaling.h"
#include "ssl/optim/schedules.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

constexpr int64_t kEpochsOfScalingCases = 100;

ConfigNode ConfigWithEpochs(int64_t num_epochs) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(num_epochs));
  return config;
}

absl::StatusOr<std::unique_ptr<Schedule>> Make(const ConfigNode& params, int64_t num_epochs) {
  TestRun run(ConfigWithEpochs(num_epochs));
  return run.MakeSchedule(params);
}

void ExpectValues(const Schedule& schedule, const golden::Step& step) {
  const std::vector<double> where = golden::ListOf(step.outputs.at("where"));
  const std::vector<double> values = golden::ListOf(step.outputs.at("values"));
  ASSERT_EQ(where.size(), values.size());
  for (size_t i = 0; i < where.size(); ++i) {
    EXPECT_NEAR(schedule.ValueAt(where[i]), values[i], 1e-9 * std::abs(values[i]) + 1e-12) << "where " << where[i];
  }
}

void CheckSchedule(const golden::Case& golden_case) {
  const ConfigNode& config = *golden_case.params.Find("config");
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(config, golden_case.Int("num_epochs")));
  ExpectValues(*schedule, golden_case.steps[0]);
  const bool each_step = golden_case.steps[0].outputs.at("update_interval").value.text() == "step";
  EXPECT_EQ(schedule->update_interval() == Schedule::UpdateInterval::kStep, each_step);
}

void CheckScheduleError(const golden::Case& golden_case) {
  EXPECT_THAT(Make(*golden_case.params.Find("config"), golden_case.Int("num_epochs")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

void CheckTrace(const golden::Case& golden_case) {
  const int64_t num_epochs = golden_case.Int("num_epochs");
  const int64_t steps = golden_case.Int("iterations_per_epoch");
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(*golden_case.params.Find("config"), num_epochs));
  const std::vector<double> expected = golden::ListOf(golden_case.steps[0].outputs.at("lr"));
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
  ConfigNode config = ConfigWithEpochs(kEpochsOfScalingCases);
  config.SetPath("OPTIMIZER.param_schedulers.lr", *golden_case.params.Find("lr"));
  if (const ConfigNode* head = golden_case.params.Find("lr_head"); head != nullptr) {
    config.SetPath("OPTIMIZER.param_schedulers.lr_head", *head);
    config.SetPath("OPTIMIZER.head_optimizer_params.use_different_lr", ConfigNode::FromBool(true));
  }
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", *golden_case.params.Find("batch_size_per_replica"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", *golden_case.params.Find("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", *golden_case.params.Find("num_nodes"));
  return config;
}

// Every scalar of the expected schedule, and of its parts, stands in the resolved one.
void ExpectSameSettings(const ConfigNode& actual, const ConfigNode& expected) {
  for (const auto& [key, value] : expected.entries()) {
    const ConfigNode* found = actual.Find(key);
    if (value.is_list() && value.items().empty()) continue;  // VISSL adds empty lists
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
  ExpectSameSettings(resolved, step.outputs.at("config").value);
  ASSERT_OK_AND_ASSIGN(const auto schedule, Make(resolved, kEpochsOfScalingCases));
  ExpectValues(*schedule, step);
  if (step.outputs.count("config_head") > 0) {
    ExpectSameSettings(*config.FindPath("OPTIMIZER.param_schedulers.lr_head"), step.outputs.at("config_head").value);
  }
}

void CheckScalingError(const golden::Case& golden_case) {
  ConfigNode config = ScalingConfig(golden_case);
  EXPECT_THAT(ResolveLearningRateScaling(&config), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SchedulesGolden, ValuesIntervalsErrorsAndScalingMatch) {
  golden::RunCategory("schedules", {{"lr_scaling", &CheckScaling},
                                    {"lr_scaling_error", &CheckScalingError},
                                    {"lr_trace", &CheckTrace},
                                    {"schedule", &CheckSchedule},
                                    {"schedule_error", &CheckScheduleError}});
}

}  // namespace
}  // namespace ssl
