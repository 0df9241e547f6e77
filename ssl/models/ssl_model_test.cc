// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/ssl_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Features are the mean of each channel; records the batch of every pass.
class MeanTrunk : public Trunk {
 public:
  explicit MeanTrunk(std::vector<std::vector<int64_t>>* passes) : passes_(passes) {}

  at::Tensor Forward(const at::Tensor& images) override {
    passes_->push_back(images.sizes().vec());
    return images.mean({2, 3});
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>&) override {
    return {images.mean({2, 3})};
  }
  std::vector<std::string> feature_names() const override { return {"mean"}; }
  int64_t output_dim() const override { return 3; }
  ModelTensors Tensors() const override { return {}; }
  void SetTraining(bool) override {}

 private:
  std::vector<std::vector<int64_t>>* const passes_;
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
  options.bgr = true;
  const at::Tensor row = Run(options, {View(1, 4)})[0][0];
  EXPECT_EQ(row[0].item<double>(), 3.0);
  EXPECT_EQ(row[2].item<double>(), 1.0);
}

constexpr char kConfig[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small}}
  HEAD: {PARAMS: [[swav_head, {dims: [64, 16, 8], use_bn: true, num_clusters: [5]}]]}
)";

class SslModelTest : public ::testing::Test {
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

TEST_F(SslModelTest, SwavHead_ReturnsEmbeddingsAndScoresOfAllViews) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  const std::vector<at::Tensor> outputs = model->Forward({View(1, 16), View(2, 16), View(3, 8)});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({6, 8}));
  EXPECT_EQ(outputs[1].sizes(), at::IntArrayRef({6, 5}));
}

TEST_F(SslModelTest, ParametersAndState_HaveVisslsFullNames) {
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

TEST_F(SslModelTest, State_MovesAModelIntoAnother) {
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

TEST_F(SslModelTest, Features_AreOutsideTheGraph) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Build(kConfig));
  const std::vector<at::Tensor> features = model->Features(View(1, 16), {{"res4", 1}, {"res5avg", 1}});
  ASSERT_EQ(features.size(), 2u);
  EXPECT_EQ(features[0].sizes(), at::IntArrayRef({2, 32}));
  EXPECT_FALSE(features[1].requires_grad());
}

TEST_F(SslModelTest, HeadsInAList_RunAsAChain) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       Build(R"({MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}},
                                  HEAD: {PARAMS: [[[mlp, {dims: [64, 7]}], [mlp, {dims: [7, 3]}]]]}}})"));
  EXPECT_EQ(model->Parameters().back().name, "heads.0.1.clf.0.bias");
  EXPECT_EQ(model->Forward({View(1, 32)})[0].sizes(), at::IntArrayRef({2, 3}));
}

TEST_F(SslModelTest, HeadOfAnotherWidth_IsAnErrorAtItsLine) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[mlp, {dims: [2048, 10]}]]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.yaml:4: config.MODEL.HEAD.PARAMS[0] takes 2048 features (dims[0]), the trunk "
                                 "gives 512")));
}

TEST_F(SslModelTest, UnknownNames_NameTheNearest) {
  EXPECT_THAT(Build("MODEL: {TRUNK: {NAME: resnets}}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'resnet'")));
  EXPECT_THAT(Build("MODEL: {TRUNK: {RESNETS: {DEPTH: 18}}, HEAD: {PARAMS: [[swavhead, {dims: [512, 8]}]]}}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'swav_head'")));
}

TEST_F(SslModelTest, UnknownHeadArgument_IsAnErrorWithItsLine) {
  EXPECT_THAT(Build("MODEL:\n  TRUNK: {RESNETS: {DEPTH: 18}}\n  HEAD:\n    PARAMS: [[mlp, {dim: [512, 8]}]]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.yaml:4")));
}

TEST_F(SslModelTest, MalformedHeadEntry_IsAnError) {
  EXPECT_THAT(Build("MODEL: {TRUNK: {RESNETS: {DEPTH: 18}}, HEAD: {PARAMS: [mlp]}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected [name, {arguments}]")));
}

TEST_F(SslModelTest, NonTrainableParameters_AreNotAmongTheParameters) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> all, Build(kConfig));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> some,
                       Build(absl::StrCat(kConfig, "  NON_TRAINABLE_PARAMS: [heads.0.prototypes0.weight]\n")));
  EXPECT_EQ(some->Parameters().size() + 1, all->Parameters().size());
  EXPECT_THAT(Build(absl::StrCat(kConfig, "  NON_TRAINABLE_PARAMS: [heads.0.prototype0.weight]\n")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'heads.0.prototypes0.weight'")));
}

TEST_F(SslModelTest, Registration_HappensOnce) {
  EXPECT_OK(RegisterModels(&registries_));
  EXPECT_EQ(registries_.heads.Names(), (std::vector<std::string>{"mlp", "swav_head"}));
  EXPECT_EQ(registries_.trunks.Names(), (std::vector<std::string>{"resnet"}));
  const ConfigNode defaults = registries_.options.Defaults();
  EXPECT_EQ(defaults.FindPath("MODEL.TRUNK.RESNETS.DEPTH")->text(), "50");
  EXPECT_EQ(defaults.FindPath("MODEL.AMP_PARAMS.AMP_TYPE")->text(), "apex");
}

}  // namespace
}  // namespace ssl
