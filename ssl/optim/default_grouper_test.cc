// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/default_grouper.h"

#include <ATen/ops/ones.h>

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
  absl::StatusOr<std::vector<ParameterGroup>> groups = MakeDefaultGrouper(options)->Group(std::move(parameters));
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

  EXPECT_THAT(groups[1].names, ElementsAre("trunk.conv1.weight"));
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

TEST(DefaultGrouper, OwnHeadSettings_AreRefusedWithTheirPlace) {
  TestRun run(ConfigNode::Map());
  const ConfigNode params = Yaml("head_optimizer_params:\n  use_different_wd: true");

  EXPECT_THAT(MakeDefaultGrouperFromConfig(params, run.context()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("test.yaml:2: config.OPTIMIZER.head_optimizer_params.use_different_wd is 'true'")));
}

}  // namespace
}  // namespace ssl
