// SPDX-License-Identifier: Apache-2.0
//
// The parameter groupings dino, lr_decay and linear_eval_heads. What they agree on with VISSL is in the golden test.
#include <ATen/ops/ones.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedParameter Parameter(const std::string& name, bool is_norm = false, bool trainable = true) {
  return {name, at::ones({1}).set_requires_grad(trainable), is_norm};
}

absl::StatusOr<std::vector<ParameterGroup>> Group(const char* grouper, const char* optimizer, const char* config,
                                                  std::vector<NamedParameter> parameters) {
  TestRun run(Yaml(config));
  absl::StatusOr<std::unique_ptr<ParameterGrouper>> made =
      run.registries().parameter_groupers.Make(grouper, Yaml(optimizer), run.context());
  if (!made.ok()) return made.status();
  return (*made)->Group(std::move(parameters));
}

std::vector<std::string> NamesOf(const std::vector<ParameterGroup>& groups) {
  std::vector<std::string> names;
  for (const ParameterGroup& group : groups) names.push_back(group.name);
  return names;
}

TEST(DinoGrouper, BiasesAndNorms_HaveNoDecayAndNoSchedule) {
  ASSERT_OK_AND_ASSIGN(
      const auto groups,
      Group("dino", "{weight_decay: 0.04, param_schedulers: {weight_decay: {name: cosine}}}", "{}",
            {Parameter("trunk.pos_embed"), Parameter("trunk.norm.weight", true), Parameter("trunk.fc.bias"),
             Parameter("heads.0.last.weight"), Parameter("heads.0.frozen.weight", false, /*trainable=*/false)}));

  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].names, ElementsAre("trunk.pos_embed", "heads.0.last.weight"));
  EXPECT_EQ(groups[0].weight_decay, 0.04);
  EXPECT_EQ(groups[0].weight_decay_schedule, "weight_decay");
  EXPECT_THAT(groups[1].names, ElementsAre("trunk.norm.weight", "trunk.fc.bias"));
  EXPECT_EQ(groups[1].weight_decay, 0.0);
  EXPECT_EQ(groups[1].weight_decay_schedule, "");
}

TEST(LayerDecayGrouper, VisionTransformer_DecaysFromTheHeadsToTheInput) {
  std::vector<NamedParameter> model = {Parameter("trunk.pos_embed")};
  for (int block = 0; block < 12; ++block) {
    model.push_back(Parameter("trunk.blocks." + std::to_string(block) + ".attn.qkv.weight"));
  }
  model.push_back(Parameter("trunk.norm.weight", true));
  model.push_back(Parameter("heads.0.clf.weight"));

  ASSERT_OK_AND_ASSIGN(const auto groups, Group("lr_decay", "{layer_wise_lr_decay: {decay: 0.5}}",
                                                "{MODEL: {TRUNK: {NAME: vision_transformer}}}", model));

  ASSERT_EQ(groups.size(), 15u);
  for (size_t depth = 0; depth <= 12; ++depth)
    EXPECT_EQ(groups[depth].name, "layer" + std::to_string(depth) + "_regularized");
  EXPECT_DOUBLE_EQ(groups[0].learning_rate_scale, 1.0 / 8192);
  EXPECT_EQ(groups[13].name, "layer12_unregularized");
  EXPECT_EQ(groups[13].learning_rate_scale, 0.5);
  EXPECT_EQ(groups[14].name, "layer13_regularized");
  EXPECT_EQ(groups[14].learning_rate_scale, 1.0);
}

TEST(LayerDecayGrouper, ResNet_KnowsBothSpellingsOfItsStem) {
  ASSERT_OK_AND_ASSIGN(
      const auto groups,
      Group("lr_decay", "{param_schedulers: {weight_decay: {name: cosine}}}", "{MODEL: {TRUNK: {NAME: resnet}}}",
            {Parameter("trunk.conv1.weight"), Parameter("trunk._feature_blocks.bn1.weight", true),
             Parameter("trunk.layer3.0.conv1.weight"), Parameter("heads.0.conv1.weight")}));

  EXPECT_THAT(NamesOf(groups),
              ElementsAre("layer0_regularized", "layer0_unregularized", "layer3_regularized", "layer5_regularized"));
  EXPECT_EQ(groups[0].weight_decay_schedule, "weight_decay");
  EXPECT_EQ(groups[1].weight_decay_schedule, "");
  EXPECT_DOUBLE_EQ(groups[2].learning_rate_scale, 0.81);
}

TEST(LayerDecayGrouper, OtherTrunks_AreRefusedWithTheirPlace) {
  EXPECT_THAT(
      Group("lr_decay", "{}", "MODEL:\n  TRUNK:\n    NAME: regnet", {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("test.yaml:3: config.MODEL.TRUNK.NAME is 'regnet', expected one of resnet, "
                         "vision_transformer, vision_transformer_fsdp because param_group_constructor is lr_decay")));
  EXPECT_THAT(Group("lr_decay", "{}", "{}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.MODEL.TRUNK.NAME is missing")));
}

TEST(LinearEvalHeadsGrouper, EachHead_HasItsOwnSettings) {
  const char* optimizer =
      "{weight_decay: 0.1, regularize_bias: false, linear_eval_heads: [{lr: 1.0}, {lr: 0.5, weight_decay: 0.01, "
      "regularize_bn: true}]}";

  ASSERT_OK_AND_ASSIGN(const auto groups, Group("linear_eval_heads", optimizer, "{}",
                                                {Parameter("trunk.conv1.weight"), Parameter("heads.0.bn.weight", true),
                                                 Parameter("heads.0.clf.weight"), Parameter("heads.1.bn.weight", true),
                                                 Parameter("heads.1.bn.bias"), Parameter("heads.1.clf.weight")}));

  EXPECT_THAT(NamesOf(groups),
              ElementsAre("head0_unregularized", "head0_regularized", "head1_regularized", "head1_unregularized"));
  EXPECT_EQ(groups[1].weight_decay, 0.1);
  EXPECT_EQ(groups[1].learning_rate_scale, 1.0);
  EXPECT_THAT(groups[2].names, ElementsAre("heads.1.bn.weight", "heads.1.clf.weight"));
  EXPECT_EQ(groups[2].weight_decay, 0.01);
  EXPECT_EQ(groups[2].learning_rate_scale, 0.5);
  EXPECT_EQ(groups[3].learning_rate_scale, 0.5);
}

TEST(LinearEvalHeadsGrouper, HeadWithoutEntry_IsNamed) {
  EXPECT_THAT(
      Group("linear_eval_heads", "linear_eval_heads: [{lr: 1}]", "{}", {Parameter("heads.1.clf.weight")}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("test.yaml:1: config.OPTIMIZER.linear_eval_heads has 1 entries, expected one for each head; "
                         "parameter heads.1.clf.weight has none")));
}

TEST(LinearEvalHeadsGrouper, WrongEntries_AreNamedWithTheirPlace) {
  EXPECT_THAT(Group("linear_eval_heads", "linear_eval_heads:\n- lr: 1\n- weight_decay: 0", "{}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:3: config.OPTIMIZER.linear_eval_heads.1.lr is missing")));
  EXPECT_THAT(Group("linear_eval_heads", "linear_eval_heads:\n- lr: 1\n  wd: 0", "{}", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:3"), HasSubstr("config.OPTIMIZER.linear_eval_heads.0.wd"))));
}

}  // namespace
}  // namespace ssl
