// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/register_optim.h"

#include <ATen/ops/ones.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  EXPECT_THAT(registries.optimizers.Names(), ElementsAre("adam", "adamw", "lars", "rmsprop", "sgd", "sgd_fsdp"));
  EXPECT_THAT(registries.parameter_groupers.Names(), ElementsAre("default", "dino", "linear_eval_heads", "lr_decay"));
  EXPECT_THAT(registries.schedules.Names(),
              ElementsAre("composite", "constant", "cosine", "cosine_warm_restart", "exponential", "inverse_sqrt",
                          "linear", "multistep", "polynomial", "step", "step_with_fixed_gamma"));
  EXPECT_THAT(registries.options.Paths(), ElementsAre("OPTIMIZER"));
  EXPECT_EQ(registries.resolvers.size(), 2u);
}

TEST(RegisterOptim, Twice_IsTheSameAsOnce) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));

  EXPECT_OK(RegisterOptim(&registries));

  EXPECT_EQ(registries.resolvers.size(), 2u);
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
use_zero: false
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
  for (const char* schedule : {"param_schedulers.lr", "param_schedulers.lr_head"}) {
    for (const auto& [key, value] : expected.FindPath("param_schedulers.lr")->entries()) {
      ExpectSameValue(*actual.FindPath(schedule)->Find(key), value, key);
    }
  }
  const ConfigNode larc = Yaml("{clip: false, eps: 1e-08, trust_coefficient: 0.001}");
  for (const auto& [key, value] : larc.entries()) ExpectSameValue(*actual.Find("larc_config")->Find(key), value, key);
  EXPECT_EQ(*actual.FindPath("head_optimizer_params.weight_decay")->AsDouble(), 1e-4);
  EXPECT_EQ(*actual.FindPath("layer_wise_lr_decay.decay")->AsDouble(), 0.9);
}

TEST(RegisterOptim, OptimizersThatRepeatOthers_AreRefusedByName) {
  TestRun run(ConfigNode::Map());

  for (const char* name : {"adamw_mt", "rmsprop_tf"}) {
    EXPECT_THAT(run.registries().optimizers.Make(name, Yaml("{}"), run.context()),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(absl::StrCat("no optimizer is named '", name, "'"))));
  }
}

TEST(RegisterOptim, Defaults_MakeOptimizerGroupsAndSchedule) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));
  TestRun run(registries.options.Defaults());
  const ConfigNode params = *registries.options.Defaults().Find("OPTIMIZER");

  for (const std::string& name : registries.optimizers.Names()) {
    EXPECT_OK(registries.optimizers.Make(name, params, run.context())) << name;
  }
  for (const char* name : {"default", "dino", "linear_eval_heads"}) {
    EXPECT_OK(registries.parameter_groupers.Make(name, params, run.context())) << name;
  }
  EXPECT_OK(run.MakeSchedule(*params.FindPath("param_schedulers.lr")));
}

TEST(RegisterOptim, SchedulesOfDecayAndMomentum_MayBeAddedAndAreOffByDefault) {
  Registries registries;
  ASSERT_OK(RegisterOptim(&registries));
  const ConfigNode defaults = registries.options.Defaults();
  TestRun run(defaults);

  for (const char* name : {"weight_decay", "weight_decay_head", "momentum"}) {
    EXPECT_TRUE(defaults.FindPath(absl::StrCat("OPTIMIZER.param_schedulers.", name))->free_form()) << name;
  }
  ASSERT_OK_AND_ASSIGN(const auto grouper,
                       registries.parameter_groupers.Make("default", *defaults.Find("OPTIMIZER"), run.context()));
  ASSERT_OK_AND_ASSIGN(const auto groups,
                       grouper->Group({{"heads.0.w", at::ones({1}).set_requires_grad(true), false}}));
  EXPECT_EQ(groups.at(0).weight_decay_schedule, "");
  EXPECT_EQ(groups.at(0).learning_rate_schedule, "lr");
}

}  // namespace
}  // namespace ssl
