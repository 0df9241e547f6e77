// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_layers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A stage is the pixels times its pooled size; the heads' outputs are the pixels twice, and nonsense.
class ScalingModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {views[0].mul(2), views[0].mul(0)};
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    std::vector<at::Tensor> stages;
    for (const FeatureRequest& request : requests) stages.push_back(images.mul(request.pool.size.at(0)));
    return stages;
  }
  std::vector<FeatureRequest> configured_features() const override { return configured; }
  std::vector<std::string> feature_names() const override { return stages; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool training) override {}

  std::vector<FeatureRequest> configured;
  std::vector<std::string> stages = {"res4", "res5avg"};
};

std::vector<FeatureRequest> Requests(const std::vector<std::string>& texts) {
  return ParseFeatureRequests(texts).value();
}

at::Tensor Images() { return at::arange(24, at::kFloat).view({2, 3, 2, 2}); }

TEST(ParseFeatureRequestsTest, StageAndPooledSize) {
  ASSERT_OK_AND_ASSIGN(const std::vector<FeatureRequest> requests, ParseFeatureRequests({"res4:2", "res5avg"}));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].name, "res4");
  EXPECT_EQ(requests[0].pool.kind, FeaturePool::Kind::kAdaptiveAverage);
  EXPECT_EQ(requests[0].pool.size, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(requests[1].name, "res5avg");
  EXPECT_EQ(requests[1].pool.kind, FeaturePool::Kind::kIdentity);
}

TEST(ParseFeatureRequestsTest, PooledSizeThatIsNoNumber_IsRefused) {
  EXPECT_THAT(ParseFeatureRequests({"res4:two"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("feature 'res4:two'")));
}

TEST(LayerNamesTest, RepeatedStages_AreNumbered) {
  EXPECT_THAT(LayerNames(Requests({"res5avg", "res4:2", "res5avg", "res5avg"})),
              ElementsAre("res5avg", "res4", "res5avg_1", "res5avg_2"));
}

TEST(UsualFeaturesTest, ConfiguredOnesComeFirst) {
  ScalingModel model;
  model.configured = Requests({"a:7"});
  EXPECT_THAT(LayerNames(UsualFeatures(model, ConfigNode::Map())), ElementsAre("a"));
}

TEST(UsualFeaturesTest, OfAPreTrainedNetwork_AreThoseOfTheTrunk) {
  EXPECT_THAT(LayerNames(UsualFeatures(ScalingModel(), ConfigNode::Map())), ElementsAre("res5avg"));
}

TEST(UsualFeaturesTest, PooledStage_HasItsUsualName) {
  ScalingModel model;
  model.stages = {"res5", "res5avg", "flatten"};
  EXPECT_THAT(LayerNames(UsualFeatures(model, ConfigNode::Map())), ElementsAre("res5avg"));
  model.stages = {"block0", "lastCLS"};
  EXPECT_THAT(LayerNames(UsualFeatures(model, ConfigNode::Map())), ElementsAre("lastCLS"));
}

TEST(UsualFeaturesTest, WhereAnEvaluationIsConfigured_AreTheHeads) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON", ConfigNode::FromBool(true));
  EXPECT_THAT(LayerNames(UsualFeatures(ScalingModel(), config)), ElementsAre("heads"));
}

TEST(UsualFeaturesTest, OfAModelWithoutStages_AreTheHeads) {
  ScalingModel model;
  model.stages = {};
  EXPECT_THAT(LayerNames(UsualFeatures(model, ConfigNode::Map())), ElementsAre("heads"));
}

TEST(ChooseFeatureLayersTest, StagesAndHeads_ComeInTheirOrder) {
  ScalingModel model;
  const FeatureLayers layers = ChooseFeatureLayers(model, Requests({"b:3", "heads", "b:5"}), Autocast::kOff);
  EXPECT_THAT(layers.names, ElementsAre("b", "heads", "b_1"));
  const std::vector<at::Tensor> features = layers.compute(Images());
  ASSERT_EQ(features.size(), 3u);
  EXPECT_TRUE(at::equal(features[0], Images().mul(3)));
  EXPECT_TRUE(at::equal(features[1], Images().mul(2).flatten(1)));
  EXPECT_TRUE(at::equal(features[2], Images().mul(5)));
}

TEST(JoinLayersTest, SeveralLayers_AreNormalizedAndSideBySide) {
  ScalingModel model;
  const FeatureLayers layers = JoinLayers(ChooseFeatureLayers(model, Requests({"a:1", "b:3"}), Autocast::kOff));
  EXPECT_THAT(layers.names, ElementsAre("a+b"));
  const at::Tensor rows = layers.compute(Images())[0];
  ASSERT_EQ(rows.sizes(), at::IntArrayRef({2, 24}));
  EXPECT_NEAR(rows[1].norm().item<double>(), std::sqrt(2.0), 1e-6);
  EXPECT_TRUE(at::allclose(rows.slice(1, 0, 12), rows.slice(1, 12, 24)));
}

TEST(JoinLayersTest, OneLayer_IsTakenAsItIs) {
  ScalingModel model;
  const FeatureLayers layers = JoinLayers(ChooseFeatureLayers(model, Requests({"a:2"}), Autocast::kOff));
  EXPECT_TRUE(at::equal(layers.compute(Images())[0], Images().mul(2).flatten(1)));
}

TEST(PixelLayersTest, NormalizeIsUndoneExactly) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode transforms,
                       ParseYaml("- {name: ToTensor}\n- {name: Normalize, mean: [0.1, 0.5, 0.9], std: [0.2, 0.3, 0.7]}",
                                 "test.yaml", nullptr));
  ASSERT_OK_AND_ASSIGN(const FeatureLayers layers, PixelLayers(transforms));
  const at::Tensor pictures = at::randint(256, {4, 3, 5, 5}, at::kFloat).div(255.0);
  const at::Tensor mean = at::tensor({0.1, 0.5, 0.9}, at::kFloat).view({1, 3, 1, 1});
  const at::Tensor std = at::tensor({0.2, 0.3, 0.7}, at::kFloat).view({1, 3, 1, 1});
  EXPECT_TRUE(at::equal(layers.compute(pictures.sub(mean).div(std))[0], pictures));
}

// The pixels of a set of `images`, [N, C, H, W], which come in two batches.
FeatureSet PixelsOf(const at::Tensor& images) {
  const FeatureLayers layers = PixelLayers(ConfigNode::List()).value();
  return {{at::cat({layers.compute(images.slice(0, 0, 2))[0], layers.compute(images.slice(0, 2))[0]})}, {}, {}};
}

TEST(PixelLayersTest, RepeatedGreyChannels_OfAWholeDataSet_CountOnce) {
  const at::Tensor grey = at::randint(256, {4, 1, 5, 5}, at::kFloat).div(255.0);
  FeatureSet train = PixelsOf(grey.expand({4, 3, 5, 5}));
  FeatureSet test = PixelsOf(grey.slice(0, 0, 3).expand({3, 3, 5, 5}));
  CountGreyPixelsOnce(&train, &test);
  EXPECT_TRUE(at::equal(train.features[0], grey));
  EXPECT_TRUE(at::equal(test.features[0], grey.slice(0, 0, 3)));
}

TEST(PixelLayersTest, GreyImages_AmongColouredOnes_KeepTheirChannels) {
  at::Tensor images = at::randint(256, {4, 1, 5, 5}, at::kFloat).div(255.0).repeat({1, 3, 1, 1});
  FeatureSet grey = PixelsOf(images);
  images.select(0, 3).select(0, 1).mul_(0.5);  // the first batch stays grey
  FeatureSet mixed = PixelsOf(images);
  CountGreyPixelsOnce(&mixed, &grey);
  EXPECT_EQ(mixed.features[0].sizes(), at::IntArrayRef({4, 3, 5, 5}));
  EXPECT_EQ(grey.features[0].sizes(), at::IntArrayRef({4, 3, 5, 5}));
  CountGreyPixelsOnce(&grey, &mixed);
  EXPECT_EQ(grey.features[0].sizes(), at::IntArrayRef({4, 3, 5, 5}));
}

TEST(PixelLayersTest, LargeImages_AreAveragedDown) {
  ASSERT_OK_AND_ASSIGN(const FeatureLayers layers, PixelLayers(ConfigNode::List()));
  const at::Tensor images = at::randint(256, {2, 3, 64, 20}, at::kFloat).div(255.0);
  const at::Tensor rows = layers.compute(images)[0];
  ASSERT_EQ(rows.sizes(), at::IntArrayRef({2, 3, 32, 20}));
  EXPECT_TRUE(at::allclose(rows, images.view({2, 3, 32, 2, 20}).mean(3)));
}

}  // namespace
}  // namespace ssl
