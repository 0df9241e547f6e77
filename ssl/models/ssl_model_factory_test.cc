// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model_factory.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor View(double value, int64_t size) { return at::full({2, 3, size, size}, value); }

constexpr char kConfig[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small}}
  HEAD: {PARAMS: [[swav_head, {dims: [64, 16, 8], use_bn: true, num_clusters: [5]}]]}
)";

class SslModelFactory : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterModels(&registries_)); }

  absl::StatusOr<std::unique_ptr<Model>> Build(const std::string& text) {
    std::vector<std::string> warnings;
    absl::StatusOr<ConfigNode> config = ParseYaml(text, "model.yaml", &warnings);
    if (!config.ok()) return config.status();
    const BuildContext context{*config, registries_, *communicator_, /*seed=*/0, ""};
    return registries_.models.Make("multi_input_output_model", *config->Find("MODEL"), context);
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(SslModelFactory, SwavHead_ReturnsEmbeddingsAndScoresOfAllViews) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 16), View(2, 16), View(3, 8)});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({6, 8}));
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({6, 5}));
}

TEST_F(SslModelFactory, ParametersAndState_HaveVisslsFullNames) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  const std::vector<NamedParameter> parameters = model->Parameters();
  EXPECT_EQ(parameters.front().name, "trunk.conv1.weight");
  EXPECT_FALSE(parameters.front().is_norm);
  EXPECT_EQ(parameters[1].name, "trunk.bn1.weight");
  EXPECT_TRUE(parameters[1].is_norm);
  EXPECT_EQ(parameters.back().name, "heads.0.prototypes0.weight");
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  EXPECT_EQ(state[3].name, "trunk.bn1.running_mean");
  EXPECT_GT(state.size(), parameters.size());
}

TEST_F(SslModelFactory, State_MovesAModelIntoAnother) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> other, Build(kConfig));
  model->Forward({View(1, 16)});
  model->Parameters()[0].value.detach().mul_(2.0);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  ASSERT_OK(RestoreState(*other, state, "test"));
  model->SetTraining(false);
  other->SetTraining(false);
  EXPECT_TRUE(at::equal(model->Forward({View(3, 16)})[1], other->Forward({View(3, 16)})[1]));
  EXPECT_TRUE(other->Parameters()[0].value.requires_grad());
}

TEST_F(SslModelFactory, Features_AreOutsideTheGraph) {
  const FeaturePool one_pixel = {FeaturePool::Kind::kAdaptiveAverage, {1, 1}, {}, {}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  const std::vector<at::Tensor> features = model->Features(View(1, 16), {{"res4", one_pixel}, {"res5avg", one_pixel}});
  ASSERT_EQ(features.size(), 2u);
  EXPECT_EQ(features[0].sizes(), at::IntArrayRef({2, 32}));
  EXPECT_FALSE(features[1].requires_grad());
}

TEST_F(SslModelFactory, HeadsInAList_RunAsAChain) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       Build(R"({MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}},
                                  HEAD: {PARAMS: [[[mlp, {dims: [64, 7]}], [mlp, {dims: [7, 3]}]]]}}})"));
  EXPECT_EQ(model->Parameters().back().name, "heads.0.1.clf.0.bias");
  EXPECT_EQ(model->Forward({View(1, 32)})[0].sizes(), at::IntArrayRef({2, 3}));
}

TEST_F(SslModelFactory, HeadOfAnotherWidth_IsAnErrorAtItsLine) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[mlp, {dims: [2048, 10]}]]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.yaml:4: config.MODEL.HEAD.PARAMS[0] takes 2048 features (dims[0]), the trunk "
                                 "gives 512")));
}

// Whatever its head calls the width, or checks itself.
TEST_F(SslModelFactory, MistakesInAHead_NameItsPlaceAndItsArgument) {
  constexpr char kBefore[] = "MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[dino_head, {";
  const std::string place = "model.yaml:4: config.MODEL.HEAD.PARAMS[0]";
  EXPECT_THAT(Build(absl::StrCat(kBefore, "in_dim: 33, num_clusters: [4]}]]\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat(place, " takes 33 features (in_dim), the trunk gives 512"))));
  EXPECT_THAT(Build(absl::StrCat(kBefore, "num_clusters: [4]}]]\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat(place, ": dino_head.in_dim is not set, expected the width"))));
  EXPECT_THAT(Build(absl::StrCat(kBefore, "in_dim: 512, num_clusters: [4, 5]}]]\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat(place, ": dino_head.num_clusters has 2 numbers"))));
}

TEST_F(SslModelFactory, ValueThatATrunkRefuses_IsAnErrorAtItsLine) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK:\n    RESNETS: {DEPTH: 19}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.yaml:3: config.MODEL.TRUNK.RESNETS.DEPTH is 19, expected 18")));
}

TEST_F(SslModelFactory, UnknownNames_NameTheNearest) {
  EXPECT_THAT(Build("MODEL: {TRUNK: {NAME: resnets}}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'resnet'")));
  EXPECT_THAT(Build("MODEL: {TRUNK: {RESNETS: {DEPTH: 18}}, HEAD: {PARAMS: [[swavhead, {dims: [512, 8]}]]}}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'swav_head'")));
}

TEST_F(SslModelFactory, UnknownHeadArgument_IsAnErrorWithItsLine) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[mlp, {dim: [512, 8]}]]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.yaml:4")));
}

TEST_F(SslModelFactory, MalformedHeadEntry_IsAnError) {
  EXPECT_THAT(Build("MODEL: {TRUNK: {RESNETS: {DEPTH: 18}}, HEAD: {PARAMS: [mlp]}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is [mlp, ...], one head, expected a list of heads, [[mlp, {arguments}]]")));
}

TEST_F(SslModelFactory, NonTrainableParameters_AreNotAmongTheParameters) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> all, Build(kConfig));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> some,
                       Build(absl::StrCat(kConfig, "  NON_TRAINABLE_PARAMS: [heads.0.prototypes0.weight]\n")));
  EXPECT_EQ(some->Parameters().size() + 1, all->Parameters().size());
  EXPECT_THAT(Build(absl::StrCat(kConfig, "  NON_TRAINABLE_PARAMS: [heads.0.prototype0.weight]\n")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'heads.0.prototypes0.weight'")));
}

TEST_F(SslModelFactory, Registration_HappensOnce) {
  EXPECT_OK(RegisterModels(&registries_));
  EXPECT_EQ(registries_.heads.Names(),
            (std::vector<std::string>{"dino_head", "dino_head_fsdp", "eval_mlp", "eval_mlp_fsdp", "identity", "mlp",
                                      "mlp_fsdp", "mlp_res", "siamese_concat_view", "swav_head", "swav_head_fsdp"}));
  EXPECT_EQ(registries_.trunks.Names(),
            (std::vector<std::string>{"regnet", "regnet_fsdp", "resnet", "vision_transformer",
                                      "vision_transformer_fsdp", "xcit", "xcit_fsdp"}));
  const ConfigNode defaults = registries_.options.Defaults();
  EXPECT_EQ(defaults.FindPath("MODEL.TRUNK.RESNETS.DEPTH")->text(), "50");
}

// Linear evaluation of three stages; arguments: of FEATURE_EVAL_SETTINGS, heads.
std::string EvaluationConfig(const std::string& settings, const std::string& heads) {
  return absl::StrCat(R"(MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}}
  FEATURE_EVAL_SETTINGS:
    EVAL_MODE_ON: True
    SHOULD_FLATTEN_FEATS: False
    LINEAR_EVAL_FEAT_POOL_OPS_MAP: [
      ["res4", ["AvgPool2d", [[2, 2], 1, 0]]], ["res2", ["AdaptiveMaxPool2d", [[3, 3]]]], ["res5avg", ["Identity", []]]]
    )",
                      settings, "\n  HEAD:\n    PARAMS: ", heads, "\n");
}

constexpr char kThreeHeads[] =
    "[[eval_mlp, {in_channels: 32, dims: [32, 4]}], [eval_mlp, {in_channels: 8, dims: [72, 5]}], "
    "[mlp, {dims: [64, 6]}]]";

TEST_F(SslModelFactory, LinearEvaluation_TrainsOneHeadForEachFeature) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       Build(EvaluationConfig("FREEZE_TRUNK_ONLY: True", kThreeHeads)));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> before, CollectState(*model));
  const at::Tensor running_mean = before[3].tensor.clone();
  model->SetTraining(true);
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 32)});
  ASSERT_EQ(outputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(outputs[i].size(1), static_cast<int64_t>(4 + i)) << "in the order asked for";
  (outputs[0].sum() + outputs[1].sum() + outputs[2].sum()).backward();
  for (const NamedParameter& parameter : model->Parameters()) {
    EXPECT_EQ(parameter.name.rfind("heads.", 0), 0u) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().defined()) << parameter.name;
  }
  EXPECT_EQ(model->Parameters().size(), 10u);
  EXPECT_EQ(before[3].name, "trunk.bn1.running_mean");
  EXPECT_TRUE(at::equal(before[3].tensor, running_mean)) << "the trunk keeps its statistics";
  EXPECT_EQ(model->configured_features().size(), 3u);
  EXPECT_EQ(model->configured_features()[0].name, "res4");
  EXPECT_EQ(model->feature_names().front(), "conv1");
}

TEST_F(SslModelFactory, FreezeTrunkAndHead_LeavesNoParameters) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       Build(EvaluationConfig("FREEZE_TRUNK_AND_HEAD: True", kThreeHeads)));
  EXPECT_TRUE(model->Parameters().empty());
}

TEST_F(SslModelFactory, ExtractTrunkFeaturesOnly_ReturnsTheFeatures) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       Build(EvaluationConfig("FREEZE_TRUNK_AND_HEAD: True\n    EXTRACT_TRUNK_FEATURES_ONLY: True",
                                              "[[mlp, {dims: [9, 9]}]]")));
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 32)});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({2, 8, 3, 3}));
}

TEST_F(SslModelFactory, WithoutFreezing_TheMapIsForExtractionOnly) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(EvaluationConfig("", "[[mlp, {dims: [64, 6]}]]")));
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 32)});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(model->Parameters().front().name, "trunk.conv1.weight");
  EXPECT_EQ(model->configured_features().size(), 3u);
}

TEST_F(SslModelFactory, AnotherNumberOfHeadsThanFeatures_IsAnErrorWithBoth) {
  EXPECT_THAT(Build(EvaluationConfig("FREEZE_TRUNK_ONLY: True", "[[mlp, {dims: [64, 6]}], [mlp, {dims: [64, 6]}]]")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.yaml:10: config.MODEL.HEAD.PARAMS has 2 heads, "
                                 "config.MODEL.FEATURE_EVAL_SETTINGS.LINEAR_EVAL_FEAT_POOL_OPS_MAP 3 features")));
}

TEST_F(SslModelFactory, FreezingBothWays_IsAnError) {
  EXPECT_THAT(Build(EvaluationConfig("FREEZE_TRUNK_ONLY: True\n    FREEZE_TRUNK_AND_HEAD: True", kThreeHeads)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected one of them")));
}

TEST_F(SslModelFactory, UnknownStage_IsAnErrorAtItsLine) {
  EXPECT_THAT(
      Build("MODEL:\n  FEATURE_EVAL_SETTINGS:\n    LINEAR_EVAL_FEAT_POOL_OPS_MAP: [[res5av, [Identity, []]]]\n"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("model.yaml:3: config.MODEL.FEATURE_EVAL_SETTINGS."
                               "LINEAR_EVAL_FEAT_POOL_OPS_MAP[0] names the stage 'res5av'"),
                     HasSubstr("did you mean 'res5avg'"))));
}

TEST_F(SslModelFactory, NamedInputs_HaveTheHeadsOfTheMapping) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Model> model,
      Build(
          "MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}}\n"
          "  MULTI_INPUT_HEAD_MAPPING: [[images, []], [patches, [res5avg]]]\n"
          "  HEAD: {PARAMS: [[mlp, {dims: [64, 8]}], [[mlp, {dims: [64, 6]}], [siamese_concat_view, {num_towers: 4}], "
          "[mlp, {dims: [24, 8]}]]]}\n"));
  const std::vector<at::Tensor> outputs =
      model->ForwardNamed({{"images", View(1, 32)}, {"patches", at::full({8, 3, 32, 32}, 0.5)}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({2, 8}));
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({2, 8}));
}

TEST_F(SslModelFactory, MappedHeadOfAnotherWidth_IsAnError) {
  EXPECT_THAT(
      Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  MULTI_INPUT_HEAD_MAPPING: [[images, []]]\n"
            "  HEAD: {PARAMS: [[mlp, {dims: [64, 8]}]]}\n"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 64 features (dims[0]), the trunk gives 512")));
}

TEST_F(SslModelFactory, HeadAfterASiameseOne_GetsAllTowers) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[[mlp, {dims: [512, 10]}], "
                    "[siamese_concat_view, {num_towers: 9}], [mlp, {dims: [10, 8]}]]]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.yaml:4: config.MODEL.HEAD.PARAMS[0][2] takes 10 features (dims[0]), the head "
                                 "before it gives 90")));
}

TEST_F(SslModelFactory, Lab_GivesTheStemOneChannel) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(absl::StrCat(kConfig, "  INPUT_TYPE: lab\n")));
  EXPECT_EQ(model->Parameters().front().value.size(1), 1);
  EXPECT_EQ(model->Forward({View(1, 16)})[0].size(0), 2);
}

}  // namespace
}  // namespace ssl
