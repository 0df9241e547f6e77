// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/heads/mlp.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// The output is the mean of each channel times a parameter, the stages are "map" (the images) and "mean"; records the
// batch of every pass.
class MeanTrunk : public Trunk {
 public:
  explicit MeanTrunk(std::vector<std::vector<int64_t>>* passes)
      : passes_(passes), scale_(at::full({1}, 1.0).requires_grad_()) {}

  at::Tensor Forward(const at::Tensor& images) override {
    passes_->push_back(images.sizes().vec());
    return images.mean({2, 3}) * scale_;
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override {
    passes_->push_back(images.sizes().vec());
    std::vector<at::Tensor> features;
    for (const std::string& name : names) features.push_back((name == "map" ? images : images.mean({2, 3})) * scale_);
    return features;
  }
  std::vector<std::string> feature_names() const override { return {"map", "mean"}; }
  int64_t output_dim() const override { return 3; }
  ModelTensors Tensors() const override { return {{"scale", scale_, TensorRole::kWeight}}; }
  void SetTraining(bool training) override { training_ = training; }
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>&) override {}

  bool training() const { return training_; }

 private:
  std::vector<std::vector<int64_t>>* const passes_;
  const at::Tensor scale_;
  bool training_ = false;
};

// A view whose pixels in channel c are `value` + c.
at::Tensor View(double value, int64_t size) {
  at::Tensor view = at::full({2, 3, size, size}, value);
  view.select(1, 1).add_(1.0);
  view.select(1, 2).add_(2.0);
  return view;
}

class GroupingTest : public ::testing::Test {
 protected:
  std::vector<at::Tensor> Run(SslModelOptions options, const std::vector<at::Tensor>& views) {
    SslModel model(std::make_unique<MeanTrunk>(&passes_), {}, options);
    return model.Forward(views);
  }

  std::vector<std::vector<int64_t>> passes_;
};

TEST_F(GroupingTest, ConsecutiveViewsOfOneResolution_ShareAPass) {
  const std::vector<at::Tensor> outputs = Run({}, {View(1, 8), View(2, 8), View(3, 4), View(4, 4), View(5, 8)});
  EXPECT_EQ(passes_, (std::vector<std::vector<int64_t>>{{4, 3, 8, 8}, {4, 3, 4, 4}, {2, 3, 8, 8}}));
  ASSERT_EQ(outputs.size(), 1u);
  const at::Tensor first = outputs[0].select(1, 0);
  for (int64_t row = 0; row < 10; ++row) EXPECT_EQ(first[row].item<double>(), 1 + row / 2) << "view-major order";
}

TEST_F(GroupingTest, SinglePassEveryCrop_RunsEachViewAlone) {
  SslModelOptions options;
  options.single_pass_every_crop = true;
  Run(options, {View(1, 8), View(2, 8), View(3, 4)});
  EXPECT_EQ(passes_.size(), 3u);
}

TEST_F(GroupingTest, Bgr_SwapsTheOuterChannels) {
  SslModelOptions options;
  options.channels = InputChannelOrder::kBgr;
  const at::Tensor row = Run(options, {View(1, 4)})[0][0];
  EXPECT_EQ(row[0].item<double>(), 3.0);
  EXPECT_EQ(row[2].item<double>(), 1.0);
}

TEST_F(GroupingTest, Lab_GivesTheTrunkTheFirstChannel) {
  SslModelOptions options;
  options.channels = InputChannelOrder::kLab;
  EXPECT_EQ(Run(options, {View(1, 4)})[0][0].item<double>(), 1.0);
  EXPECT_EQ(passes_, (std::vector<std::vector<int64_t>>{{2, 1, 4, 4}}));
}

FeatureRequest Request(const std::string& name, bool flatten = true) { return {name, {}, flatten}; }

std::unique_ptr<Head> Linear(int64_t in, int64_t out, int64_t seed) {
  MlpOptions options;
  options.dims = {in, out};
  absl::StatusOr<std::unique_ptr<Head>> head = MakeMlp(options, HeadSection(), seed);
  EXPECT_OK(head);
  return *std::move(head);
}

class HeadsTest : public ::testing::Test {
 protected:
  std::unique_ptr<SslModel> Make(std::vector<std::unique_ptr<Head>> heads, SslModelOptions options) {
    auto trunk = std::make_unique<MeanTrunk>(&passes_);
    trunk_ = trunk.get();
    return std::make_unique<SslModel>(std::move(trunk), std::move(heads), std::move(options));
  }

  // Two heads on two features of a frozen trunk.
  std::unique_ptr<SslModel> MakeFrozen() {
    SslModelOptions options;
    options.freeze_trunk = true;
    options.features = {Request("mean"), Request("map")};
    std::vector<std::unique_ptr<Head>> heads;
    heads.push_back(Linear(3, 5, 0));
    heads.push_back(Linear(48, 7, 1));
    return Make(std::move(heads), std::move(options));
  }

  std::vector<std::vector<int64_t>> passes_;
  MeanTrunk* trunk_ = nullptr;
};

TEST_F(HeadsTest, AsManyHeadsAsFeatures_RunPairwise) {
  const std::unique_ptr<SslModel> model = MakeFrozen();
  const at::Tensor view = View(1, 4);
  const std::vector<at::Tensor> outputs = model->Forward({view});
  EXPECT_EQ(passes_.size(), 1u) << "one pass for all features";
  ASSERT_EQ(outputs.size(), 2u);
  const std::vector<NamedParameter> parameters = model->Parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "heads.0.clf.0.weight");
  EXPECT_TRUE(at::allclose(outputs[0], at::linear(view.mean({2, 3}), parameters[0].value, parameters[1].value)));
  EXPECT_TRUE(at::allclose(outputs[1], at::linear(view.flatten(1), parameters[2].value, parameters[3].value)));
}

TEST_F(HeadsTest, FrozenTrunk_HasNoGraphAndStaysInEvaluationMode) {
  const std::unique_ptr<SslModel> model = MakeFrozen();
  EXPECT_FALSE(trunk_->training());
  model->SetTraining(true);
  EXPECT_FALSE(trunk_->training());
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 4)});
  (outputs[0].sum() + outputs[1].sum()).backward();
  EXPECT_FALSE(trunk_->Tensors()[0].value.requires_grad());
  for (const NamedParameter& parameter : model->Parameters()) EXPECT_TRUE(parameter.value.grad().defined());
}

TEST_F(HeadsTest, FrozenHeads_HaveNoParameters) {
  SslModelOptions options;
  options.freeze_trunk = true;
  options.freeze_heads = true;
  std::vector<std::unique_ptr<Head>> heads;
  heads.push_back(Linear(3, 5, 0));
  const std::unique_ptr<SslModel> model = Make(std::move(heads), options);
  EXPECT_TRUE(model->Parameters().empty());
  EXPECT_FALSE(model->Forward({View(1, 4)})[0].requires_grad());
}

TEST_F(HeadsTest, FeaturesOfSeveralResolutions_AreJoinedOneByOne) {
  SslModelOptions options;
  options.freeze_trunk = true;
  options.features = {Request("mean"), Request("mean")};
  const std::vector<at::Tensor> outputs = Make({}, options)->Forward({View(1, 8), View(2, 8), View(3, 4)});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({6, 3}));
  EXPECT_EQ(outputs[1][5][0].item<double>(), 3.0);
}

TEST_F(HeadsTest, FeaturesOfATrainedTrunk_AreNotTheHeadsInput) {
  SslModelOptions options;
  options.features = {Request("map")};
  const std::unique_ptr<SslModel> model = Make({}, options);
  EXPECT_EQ(model->Forward({View(1, 4)})[0].sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(model->configured_features().size(), 1u);
}

TEST_F(HeadsTest, OneFeatureAndSeveralHeads_AreAChain) {
  std::vector<std::unique_ptr<Head>> heads;
  heads.push_back(Linear(3, 5, 0));
  heads.push_back(Linear(5, 7, 1));
  const std::vector<at::Tensor> outputs = Make(std::move(heads), {})->Forward({View(1, 4)});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({2, 7}));
}

TEST_F(HeadsTest, OtherNumbersOfHeads_AreAnError) {
  SslModelOptions options;
  options.freeze_trunk = true;
  options.features = {Request("mean"), Request("mean"), Request("mean")};
  std::vector<std::unique_ptr<Head>> heads;
  heads.push_back(Linear(3, 5, 0));
  EXPECT_THROW(Make(std::move(heads), options)->Forward({View(1, 4)}), c10::ValueError);
}

TEST_F(HeadsTest, NamedInputs_GoToTheirHeads) {
  SslModelOptions options;
  options.inputs = {{"images", "", 0}, {"patches", "map", 1}};
  std::vector<std::unique_ptr<Head>> heads;
  heads.push_back(Linear(3, 5, 0));
  heads.push_back(Linear(12, 7, 1));
  const std::unique_ptr<SslModel> model = Make(std::move(heads), options);
  const std::vector<at::Tensor> outputs = model->ForwardNamed({{"patches", View(2, 2)}, {"images", View(1, 4)}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({2, 5})) << "in the order of the mapping";
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({2, 7}));
  outputs[1].sum().backward();
  EXPECT_TRUE(trunk_->Tensors()[0].value.grad().defined());
  EXPECT_EQ(model->ForwardNamed({{"patches", View(2, 2)}}).size(), 1u) << "an input may be missing";
}

TEST_F(HeadsTest, InputsThatNobodyMaps_AreAnErrorThatNamesThem) {
  SslModelOptions options;
  options.inputs = {{"images", "", 0}, {"patches", "", 0}};
  const std::unique_ptr<SslModel> model = Make({}, options);
  try {
    model->ForwardNamed({{"image", View(1, 4)}});
    FAIL() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), ::testing::HasSubstr("[images, patches], the batch has [image]"));
  }
  EXPECT_THROW(model->Forward({View(1, 4)}), c10::ValueError);
}

TEST_F(HeadsTest, ForwardWithMap_GivesTheOutputsOfForwardAndAGraph) {
  SslModelOptions options;
  options.freeze_trunk = true;
  for (const bool frozen : {false, true}) {
    options.freeze_trunk = frozen;
    const std::unique_ptr<SslModel> model = Make({}, options);
    const MapAndOutputs result = model->ForwardWithMap(View(1, 4), "map");
    EXPECT_EQ(result.map.sizes(), at::IntArrayRef({2, 3, 4, 4}));
    EXPECT_TRUE(result.map.requires_grad()) << "frozen: " << frozen;
    ASSERT_EQ(result.outputs.size(), 1u);
    EXPECT_TRUE(at::equal(result.outputs[0], model->Forward({View(1, 4)})[0]));
    EXPECT_THROW(model->ForwardWithMap(View(1, 4), "mean"), c10::ValueError);
  }
}

TEST_F(HeadsTest, Features_ArePooledOutsideTheGraph) {
  const std::unique_ptr<SslModel> model = Make({}, {});
  FeatureRequest halves = Request("map");
  halves.pool = {FeaturePool::Kind::kAdaptiveAverage, {2, 2}, {}, {}};
  const std::vector<at::Tensor> features = model->Features(View(1, 4), {halves, Request("map", false)});
  EXPECT_EQ(features[0].sizes(), at::IntArrayRef({2, 12}));
  EXPECT_EQ(features[1].sizes(), at::IntArrayRef({2, 3, 4, 4}));
  EXPECT_FALSE(features[0].requires_grad());
  EXPECT_TRUE(model->Features(View(1, 4), {}).empty());
}

}  // namespace
}  // namespace ssl
