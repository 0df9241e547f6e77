// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/lr_scaling.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 64 samples a rank on 8 ranks: twice the base batch.
ConfigNode Config(absl::string_view lr, absl::string_view batch = "BATCHSIZE_PER_REPLICA: 64", int nodes = 1) {
  return Yaml(absl::StrCat("DATA: {TRAIN: {", batch, "}}\nDISTRIBUTED: {NUM_NODES: ", nodes,
                           ", NUM_PROC_PER_NODE: 8}\nOPTIMIZER:\n  param_schedulers:\n    lr:\n      {", lr, "}"));
}

constexpr char kAuto[] = "auto_lr_scaling: {auto_scale: true, base_value: 0.1, base_lr_batch_size: 256}, ";

double NumberAt(const ConfigNode& config, absl::string_view key) {
  const ConfigNode* node = config.FindPath(absl::StrCat("OPTIMIZER.param_schedulers.lr.", key));
  return node == nullptr ? -1.0 : node->AsDouble().value_or(-1.0);
}

TEST(LrScaling, SwitchedOff_ChangesNothing) {
  ConfigNode config = Config("name: constant, value: 0.7");
  const ConfigNode before = config;

  EXPECT_OK(ResolveLearningRateScaling(&config));

  EXPECT_EQ(config, before);
}

TEST(LrScaling, Constant_BecomesBaseTimesBatchRatio) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: constant, value: 0.7"));

  ASSERT_OK(ResolveLearningRateScaling(&config));

  EXPECT_DOUBLE_EQ(NumberAt(config, "value"), 0.2);
}

TEST(LrScaling, FirstNumberOfOtherSchedules_BecomesBaseTimesBatchRatio) {
  ConfigNode gamma = Config(absl::StrCat(kAuto, "name: step_with_fixed_gamma, base_value: 9, gamma: 0.5"));
  ConfigNode inverse = Config(absl::StrCat(kAuto, "name: inverse_sqrt, start_value: 9"));
  ConfigNode restart = Config(absl::StrCat(kAuto, "name: cosine_warm_restart, start_value: 9, end_value: 0.9"));

  ASSERT_OK(ResolveLearningRateScaling(&gamma));
  ASSERT_OK(ResolveLearningRateScaling(&inverse));
  ASSERT_OK(ResolveLearningRateScaling(&restart));

  EXPECT_DOUBLE_EQ(NumberAt(gamma, "base_value"), 0.2);
  EXPECT_DOUBLE_EQ(NumberAt(gamma, "gamma"), 0.5);
  EXPECT_DOUBLE_EQ(NumberAt(inverse, "start_value"), 0.2);
  EXPECT_DOUBLE_EQ(NumberAt(restart, "start_value"), 0.2);
  EXPECT_DOUBLE_EQ(NumberAt(restart, "end_value"), 0.02);
}

// The schedule of the head, scaled, beside a constant one of 0.2 for the trunk.
ConfigNode WithHead(bool use_different_lr) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: constant"));
  config.SetPath("OPTIMIZER.param_schedulers.lr_head",
                 Yaml("{name: linear, end_value: 5, auto_lr_scaling: {auto_scale: true, base_value: 0.3}}"));
  config.SetPath("OPTIMIZER.head_optimizer_params.use_different_lr", ConfigNode::FromBool(use_different_lr));
  return config;
}

TEST(LrScaling, OwnScheduleOfTheHead_IsScaledByItsOwnRule) {
  ConfigNode config = WithHead(true);

  ASSERT_OK(ResolveLearningRateScaling(&config));

  const ConfigNode& head = *config.FindPath("OPTIMIZER.param_schedulers.lr_head");
  EXPECT_EQ(head.Find("name")->text(), "linear");
  EXPECT_DOUBLE_EQ(*head.Find("end_value")->AsDouble(), 0.6);
}

TEST(LrScaling, HeadWithoutItsOwn_GetsTheScaledScheduleOfTheTrunk) {
  ConfigNode config = WithHead(false);

  ASSERT_OK(ResolveLearningRateScaling(&config));

  EXPECT_EQ(*config.FindPath("OPTIMIZER.param_schedulers.lr_head"), *config.FindPath("OPTIMIZER.param_schedulers.lr"));
  EXPECT_DOUBLE_EQ(NumberAt(config, "value"), 0.2);
}

TEST(LrScaling, Sqrt_GrowsWithTheRootOfTheBatchRatio) {
  ConfigNode config =
      Config("auto_lr_scaling: {auto_scale: true, scaling_type: sqrt}, name: constant", "BATCHSIZE_PER_REPLICA: 128");

  ASSERT_OK(ResolveLearningRateScaling(&config));

  EXPECT_DOUBLE_EQ(NumberAt(config, "value"), 0.2);
}

TEST(LrScaling, Twice_IsTheSameAsOnce) {
  for (const char* schedule : {"name: constant", "name: cosine, start_value: 1, end_value: 0.1",
                               "name: linear, start_value: 1, end_value: 0.1", "name: step, values: [1, 0.3, 0.09]",
                               "name: composite, lengths: [0.1, 0.9], schedulers: [{name: linear}, {name: cosine, "
                               "start_value: 2, end_value: 1}]"}) {
    ConfigNode once = Config(absl::StrCat(kAuto, schedule));
    ASSERT_OK(ResolveLearningRateScaling(&once));
    ConfigNode twice = once;

    ASSERT_OK(ResolveLearningRateScaling(&twice));

    EXPECT_EQ(twice, once) << schedule;
  }
}

TEST(LrScaling, WarmUp_StartsAtTheRateOfOneNode) {
  ConfigNode config = Config(absl::StrCat(kAuto,
                                          "name: composite, lengths: [0.1, 0.9], schedulers: [{name: linear}, "
                                          "{name: cosine, start_value: 2, end_value: 1}]"),
                             "BATCHSIZE_PER_REPLICA: 64", /*nodes=*/4);

  ASSERT_OK(ResolveLearningRateScaling(&config));

  EXPECT_DOUBLE_EQ(NumberAt(config, "schedulers.0.start_value"), 0.2);
  EXPECT_DOUBLE_EQ(NumberAt(config, "schedulers.0.end_value"), 0.8);
  EXPECT_DOUBLE_EQ(NumberAt(config, "schedulers.1.end_value"), 0.4);
}

TEST(LrScaling, NewValue_KeepsThePlaceOfTheOldOne) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: constant, value: 0.7"));

  ASSERT_OK(ResolveLearningRateScaling(&config));

  const ConfigNode* value = config.FindPath("OPTIMIZER.param_schedulers.lr.value");
  EXPECT_EQ(value->location().ToString(), "test.yaml:6");
}

TEST(LrScaling, UnknownSchedule_IsNamed) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: polynomial"));

  EXPECT_THAT(ResolveLearningRateScaling(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:6"), HasSubstr("'polynomial'"), HasSubstr("cannot scale"))));
}

TEST(LrScaling, StepsFromZero_HaveNoRatioToKeep) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: multistep, values: [0, 1], milestones: [3]"));

  EXPECT_THAT(ResolveLearningRateScaling(&config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("values is 0")));
}

TEST(LrScaling, CosineFromZero_HasNoRatioToKeep) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: cosine, start_value: 0, end_value: 1"));

  EXPECT_THAT(ResolveLearningRateScaling(&config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("start_value is 0")));
}

TEST(LrScaling, MissingBatchSize_IsNamed) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: constant"), "DROP_LAST: true");

  EXPECT_THAT(
      ResolveLearningRateScaling(&config),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is missing")));
}

TEST(LrScaling, BatchSizeOfZero_IsNamedWithItsPlace) {
  ConfigNode config = Config(absl::StrCat(kAuto, "name: constant"), "BATCHSIZE_PER_REPLICA: 0");

  EXPECT_THAT(ResolveLearningRateScaling(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 0, expected at least 1")));
}

TEST(LrScaling, NoSchedules_IsFine) {
  ConfigNode config = Yaml("DATA: {}");

  EXPECT_OK(ResolveLearningRateScaling(&config));
}

}  // namespace
}  // namespace ssl
