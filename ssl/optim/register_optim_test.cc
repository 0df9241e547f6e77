// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/register_optim.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

// Numbers may be written in several ways.
void ExpectSameValue(const ConfigNode& actual, const ConfigNode& expected, const std::string& key) {
  const absl::StatusOr<double> number = expected.AsDouble();
  if (number.ok()) {
    EXPECT_EQ(actual.AsDouble().value_or(-1.0), *number) << key;
  } else {
    EXPECT_EQ(actual, expected) << key;
  }
}

TEST(RegisterOptim, Names_AreTheseAndNoOthers) {
  Registries registries;

  ASSERT_OK(RegisterOptim(&registries));

  EXPECT_THAT(registries.optimizers.Names(), ElementsAre("adamw", "sgd"));
  EXPECT_THAT(registries.parameter_groupers.Names(), ElementsAre("default"));
  EXPECT_THAT(registries.schedules.Names(),
              ElementsAre("composite", "constant", "cosine", "linear", "multistep", "step"));
  EXPECT_THAT(registries.options.Paths(), ElementsAre("OPTIMIZER"));
  EXPECT_EQ(registries.resolvers.size(), 1u);
}

TEST(RegisterOptim, Twice_IsTheSameAsOnce) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));

  EXPECT_OK(RegisterOptim(&registries));

  EXPECT_EQ(registries.resolvers.size(), 1u);
}

TEST(RegisterOptim, Defaults_AreVissls) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));
  const ConfigNode defaults = registries.options.Defaults();
  const ConfigNode expected = Yaml(R"yaml(
name: sgd
weight_decay: 1.0e-4
momentum: 0.9
nesterov: false
num_epochs: 90
betas: [0.9, 0.999]
use_larc: false
regularize_bn: false
regularize_bias: true
construct_single_param_group_only: false
param_group_constructor: default
param_schedulers:
  lr:
    name: multistep
    update_interval: epoch
    values: [0.1, 0.01, 0.001]
    milestones: [30, 60]
    start_value: 0.1
    end_value: 0
    value: 0.1
)yaml");

  const ConfigNode& actual = *defaults.Find("OPTIMIZER");
  for (const auto& [key, value] : expected.entries()) {
    if (value.is_map()) continue;
    ExpectSameValue(*actual.Find(key), value, key);
  }
  for (const auto& [key, value] : expected.FindPath("param_schedulers.lr")->entries()) {
    ExpectSameValue(*actual.FindPath("param_schedulers.lr")->Find(key), value, key);
  }
}

TEST(RegisterOptim, Defaults_MakeOptimizerGroupsAndSchedule) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));
  TestRun run(registries.options.Defaults());
  const ConfigNode params = *registries.options.Defaults().Find("OPTIMIZER");

  EXPECT_OK(registries.optimizers.Make("sgd", params, run.context()));
  EXPECT_OK(registries.optimizers.Make("adamw", params, run.context()));
  EXPECT_OK(registries.parameter_groupers.Make("default", params, run.context()));
  EXPECT_OK(run.MakeSchedule(*params.FindPath("param_schedulers.lr")));
}

}  // namespace
}  // namespace ssl
