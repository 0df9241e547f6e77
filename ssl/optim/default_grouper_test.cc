// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/default_grouper.h"

#include <ATen/ops/ones.h>

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedParameter Parameter(const std::string& name, bool is_norm = false, bool trainable = true) {
  return {name, at::ones({1}).set_requires_grad(trainable), is_norm};
}

std::vector<NamedParameter> SmallModel() {
  return {Parameter("trunk.conv1.weight"), Parameter("trunk.bn1.weight", true), Parameter("trunk.bn1.bias"),
          Parameter("heads.0.clf.weight"), Parameter("heads.0.clf.bias")};
}

std::vector<ParameterGroup> GroupsOf(const DefaultGrouperOptions& options, std::vector<NamedParameter> parameters) {
  absl::StatusOr<std::unique_ptr<ParameterGrouper>> grouper = MakeDefaultGrouper(options);
  EXPECT_OK(grouper);
  if (!grouper.ok()) return {};
  absl::StatusOr<std::vector<ParameterGroup>> groups = (*grouper)->Group(std::move(parameters));
  EXPECT_OK(groups);
  return groups.value_or(std::vector<ParameterGroup>());
}

TEST(DefaultGrouper, Default_ExemptsNormalisationOnly) {
  const auto groups = GroupsOf({}, SmallModel());

  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].names, ElementsAre("trunk.conv1.weight", "heads.0.clf.weight", "heads.0.clf.bias"));
  EXPECT_THAT(groups[1].names, ElementsAre("trunk.bn1.weight", "trunk.bn1.bias"));
  EXPECT_EQ(groups[0].weight_decay, 1e-4);
  EXPECT_EQ(groups[1].weight_decay, 0.0);
}

TEST(DefaultGrouper, BiasOfNormalisation_NeedsBothSwitches) {
  DefaultGrouperOptions options;
  options.regularize_bn = true;
  options.regularize_bias = false;

  const auto groups = GroupsOf(options, SmallModel());

  EXPECT_THAT(groups[1].names, ElementsAre("trunk.bn1.bias", "heads.0.clf.bias"));
}

TEST(DefaultGrouper, ListedParts_AreExempt) {
  DefaultGrouperOptions options;
  options.regularize_bn = true;
  options.non_regularized_parameters = {"conv1"};

  const auto groups = GroupsOf(options, SmallModel());

  ASSERT_EQ(groups.size(), 2u);  // in the order of their first parameter
  EXPECT_EQ(groups[0].name, "unregularized");
  EXPECT_THAT(groups[0].names, ElementsAre("trunk.conv1.weight"));
}

TEST(DefaultGrouper, SingleGroup_RegularizesEverything) {
  DefaultGrouperOptions options;
  options.single_group = true;

  const auto groups = GroupsOf(options, SmallModel());

  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].names.size(), 5u);
}

TEST(DefaultGrouper, FrozenParameters_AreLeftOut) {
  const auto groups = GroupsOf({}, {Parameter("a.weight"), Parameter("b.weight", false, /*trainable=*/false)});

  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].names, ElementsAre("a.weight"));
}

TEST(DefaultGrouper, Groups_HoldTheLiveTensors) {
  const std::vector<NamedParameter> model = SmallModel();

  const auto groups = GroupsOf({}, model);

  EXPECT_TRUE(groups[0].parameters[0].is_same(model[0].value));
}

TEST(DefaultGrouper, Config_IsReadFromTheOptimizerNode) {
  TestRun run(ConfigNode::Map());
  const ConfigNode params = Yaml("{weight_decay: 0.5, regularize_bias: false, lr_of_another_package: 1}");

  ASSERT_OK_AND_ASSIGN(const auto grouper, MakeDefaultGrouperFromConfig(params, run.context()));
  ASSERT_OK_AND_ASSIGN(const auto groups, grouper->Group(SmallModel()));

  EXPECT_EQ(groups[0].weight_decay, 0.5);
  EXPECT_THAT(groups[0].names, ElementsAre("trunk.conv1.weight", "heads.0.clf.weight"));
}

// The groups of the small model by the settings of `optimizer`.
std::vector<ParameterGroup> GroupsByConfig(const char* optimizer) {
  TestRun run(ConfigNode::Map());
  absl::StatusOr<std::unique_ptr<ParameterGrouper>> grouper =
      MakeDefaultGrouperFromConfig(Yaml(optimizer), run.context());
  EXPECT_OK(grouper);
  if (!grouper.ok()) return {};
  return (*grouper)->Group(SmallModel()).value_or(std::vector<ParameterGroup>());
}

TEST(DefaultGrouper, OwnRateOfTheHead_MakesOwnGroups) {
  const auto groups =
      GroupsByConfig("{regularize_bias: false, weight_decay: 0.5, head_optimizer_params: {use_different_lr: true}}");

  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].learning_rate_schedule, "lr");
  EXPECT_EQ(groups[2].name, "head_regularized");
  EXPECT_THAT(groups[2].names, ElementsAre("heads.0.clf.weight"));
  EXPECT_EQ(groups[2].learning_rate_schedule, "lr_head");
  EXPECT_EQ(groups[2].weight_decay, 0.5);
  EXPECT_EQ(groups[3].name, "head_unregularized");
  EXPECT_EQ(groups[3].learning_rate_schedule, "lr_head");
  EXPECT_EQ(groups[3].weight_decay, 0.0);
}

TEST(DefaultGrouper, OwnDecayOfTheHead_IsUsedWhenItIsAskedFor) {
  const auto shared = GroupsByConfig("{weight_decay: 0.5, head_optimizer_params: {weight_decay: 0.25}}");
  const auto own =
      GroupsByConfig("{weight_decay: 0.5, head_optimizer_params: {use_different_wd: true, weight_decay: 0.25}}");

  EXPECT_EQ(shared.size(), 2u);
  ASSERT_EQ(own.size(), 3u);
  EXPECT_EQ(own[0].weight_decay, 0.5);
  EXPECT_EQ(own[2].weight_decay, 0.25);
  EXPECT_EQ(own[2].learning_rate_schedule, "lr");
}

TEST(DefaultGrouper, ScheduleOfTheDecay_IsForTheTrunk) {
  const auto groups = GroupsByConfig("{param_schedulers: {weight_decay: {name: cosine}}}");

  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].weight_decay_schedule, "weight_decay");
  EXPECT_EQ(groups[1].weight_decay_schedule, "");
  EXPECT_EQ(groups[2].name, "head_regularized");
  EXPECT_EQ(groups[2].weight_decay_schedule, "");
  EXPECT_EQ(groups[2].weight_decay, 1e-4);
}

TEST(DefaultGrouper, ScheduleOfTheHeadsDecay_IsForTheHead) {
  const auto groups = GroupsByConfig("{param_schedulers: {weight_decay_head: {name: cosine}, weight_decay: null}}");

  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].weight_decay_schedule, "");
  EXPECT_EQ(groups[2].weight_decay_schedule, "weight_decay_head");
}

TEST(DefaultGrouper, SingleGroup_HasOneScheduleAlsoForTheHead) {
  const auto groups = GroupsByConfig(
      "{construct_single_param_group_only: true, head_optimizer_params: {use_different_lr: true}, param_schedulers: "
      "{weight_decay: {name: cosine}}}");

  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].learning_rate_schedule, "lr");
  EXPECT_EQ(groups[0].weight_decay_schedule, "weight_decay");
}

TEST(DefaultGrouper, Patterns_AreExempt) {
  const auto groups = GroupsByConfig("{regularize_bn: true, non_regularized_parameters: ['^trunk.*bias$', clf]}");

  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[1].names, ElementsAre("trunk.bn1.bias", "heads.0.clf.weight", "heads.0.clf.bias"));
}

TEST(DefaultGrouper, UnreadablePattern_IsRefusedWithItsPlace) {
  TestRun run(ConfigNode::Map());

  EXPECT_THAT(MakeDefaultGrouperFromConfig(Yaml("weight_decay: 1\nnon_regularized_parameters: ['[']"), run.context()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.OPTIMIZER.non_regularized_parameters: '[' is no RE2 pattern")));
}

}  // namespace
}  // namespace ssl
