// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor Features(int64_t rows, int64_t width) {
  return at::sin(at::arange(rows * width, at::kFloat) * 0.7).view({rows, width});
}

std::unique_ptr<Head> Make(const MlpOptions& options, const HeadSection& section = HeadSection()) {
  absl::StatusOr<std::unique_ptr<Head>> head = MakeMlp(options, section, 0);
  EXPECT_OK(head);
  return head.ok() ? *std::move(head) : nullptr;
}

TEST(Mlp, TwoWidths_AreALinearLayer) {
  MlpOptions options;
  options.dims = {6, 4};
  const std::unique_ptr<Head> head = Make(options);
  const ModelTensors tensors = head->Tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "clf.0.weight");
  const at::Tensor expected = at::linear(Features(3, 6), tensors[0].value, tensors[1].value);
  EXPECT_TRUE(at::allclose(head->Forward(Features(3, 6))[0], expected));
  EXPECT_TRUE(at::allclose(head->Forward(Features(3, 6).view({3, 6, 1, 1}))[0], expected)) << "maps of one pixel";
}

TEST(Mlp, LayersAreCounted_LikeInASequential) {
  MlpOptions options;
  options.dims = {6, 5, 4};
  options.use_bn = true;
  options.use_relu = true;
  options.use_dropout = true;
  options.use_bias = false;
  const ModelTensors tensors = Make(options)->Tensors();
  EXPECT_EQ(tensors[1].name, "clf.1.weight");
  EXPECT_EQ(tensors[1].role, TensorRole::kNorm);
  EXPECT_EQ(tensors.back().name, "clf.4.weight") << "linear, norm, relu and dropout come before";
}

TEST(Mlp, LastLayer_GetsReluOnRequest) {
  MlpOptions options;
  options.dims = {6, 4};
  options.use_relu = true;
  EXPECT_LT(Make(options)->Forward(Features(5, 6))[0].min().item<float>(), 0.0f);
  options.skip_last_layer_relu_bn = false;
  EXPECT_GE(Make(options)->Forward(Features(5, 6))[0].min().item<float>(), 0.0f);
}

TEST(Mlp, Dropout_ActsInTrainingOnly) {
  MlpOptions options;
  options.dims = {6, 64};
  options.use_dropout = true;
  options.skip_last_layer_relu_bn = false;
  const std::unique_ptr<Head> head = Make(options);
  const at::Tensor features = Features(5, 6);
  EXPECT_GT((head->Forward(features)[0] == 0).sum().item<int64_t>(), 0);
  head->SetTraining(false);
  EXPECT_TRUE(at::equal(head->Forward(features)[0], head->Forward(features)[0]));
}

TEST(Mlp, ParamsMultiplier_ScalesTheInitialParameters) {
  MlpOptions options;
  options.dims = {6, 4};
  HeadSection section;
  section.params_multiplier = 0.5;
  const ModelTensors plain = Make(options)->Tensors();
  const ModelTensors scaled = Make(options, section)->Tensors();
  EXPECT_TRUE(at::allclose(scaled[0].value, plain[0].value * 0.5));
  EXPECT_TRUE(at::allclose(scaled[1].value, plain[1].value * 0.5));
}

TEST(Mlp, OtherWidth_IsAnErrorWithBoth) {
  MlpOptions options;
  options.dims = {6, 4};
  try {
    Make(options)->Forward(Features(3, 8).view({3, 2, 2, 2}));
    FAIL() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("takes 6 features (dims[0]), its input [3, 2, 2, 2] has 8"));
  }
}

TEST(ResidualMlp, Input_IsAddedTwiceWhereTheWidthStays) {
  MlpOptions options;
  options.dims = {6, 6, 4};
  options.use_bn = true;
  options.use_relu = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> head, MakeResidualMlp(options, HeadSection(), 0));
  const ModelTensors tensors = head->Tensors();
  EXPECT_EQ(tensors[0].name, "clf.0.mlp_res_block.0.weight");
  EXPECT_EQ(tensors[2].name, "clf.0.mlp_res_block.1.weight");
  EXPECT_EQ(tensors.back().name, "clf.1.mlp_res_block.0.bias");
  const at::Tensor input = Features(5, 6);
  const at::Tensor linear = at::linear(input, tensors[0].value, tensors[1].value);
  const at::Tensor centred = linear - linear.mean({0});
  const at::Tensor normed = centred / (centred.pow(2).mean({0}) + 1e-5).sqrt();
  const at::Tensor hidden = at::relu(normed) + input * 2;
  const at::Tensor expected = at::linear(hidden, tensors[7].value, tensors[8].value);
  EXPECT_TRUE(at::allclose(head->Forward(input)[0], expected, 1e-4, 1e-5));
}

EvalMlpOptions EvalOptions() {
  EvalMlpOptions options;
  options.in_channels = 3;
  options.dims = {12, 4};
  return options;
}

TEST(EvalMlp, Channels_AreNormalisedThenFlattened) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> head, MakeEvalMlp(EvalOptions(), HeadSection(), 0));
  const at::Tensor maps = Features(5, 12).view({5, 3, 2, 2});
  const at::Tensor centred = maps - maps.mean({0, 2, 3}, /*keepdim=*/true);
  const at::Tensor normed = centred / (centred.pow(2).mean({0, 2, 3}, /*keepdim=*/true) + 1e-5).sqrt();
  const ModelTensors tensors = head->Tensors();
  EXPECT_EQ(tensors[0].name, "channel_bn.weight");
  EXPECT_EQ(tensors[5].name, "clf.clf.0.weight");
  const at::Tensor expected = at::linear(normed.flatten(1), tensors[5].value, tensors[6].value);
  EXPECT_TRUE(at::allclose(head->Forward(maps)[0], expected, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(head->Forward(maps.contiguous(at::MemoryFormat::ChannelsLast))[0], expected, 1e-4, 1e-5));
}

TEST(EvalMlp, Rows_AreMapsOfOnePixel) {
  EvalMlpOptions options = EvalOptions();
  options.dims = {3, 3, 4};
  options.use_residual = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> head, MakeEvalMlp(options, HeadSection(), 0));
  EXPECT_EQ(head->Tensors().back().name, "clf.clf.1.mlp_res_block.0.bias");
  EXPECT_TRUE(at::allclose(head->Forward(Features(5, 3))[0], head->Forward(Features(5, 3).view({5, 3, 1, 1}))[0]));
}

TEST(EvalMlp, HeadSection_GivesEpsMomentumAndMultiplier) {
  HeadSection section;
  section.batchnorm_eps = 10.0;
  section.batchnorm_momentum = 0.5;
  section.params_multiplier = 0.5;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> plain, MakeEvalMlp(EvalOptions(), HeadSection(), 0));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> head, MakeEvalMlp(EvalOptions(), section, 0));
  EXPECT_TRUE(at::allclose(head->Tensors()[5].value, plain->Tensors()[5].value * 0.5));
  const at::Tensor maps = Features(5, 12).view({5, 3, 2, 2});
  head->Forward(maps);
  EXPECT_TRUE(at::allclose(head->Tensors()[2].value, maps.mean({0, 2, 3}) * 0.5, 1e-4, 1e-6));
}

TEST(EvalMlp, OtherChannelsOrWidths_AreErrorsWithBoth) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> head, MakeEvalMlp(EvalOptions(), HeadSection(), 0));
  const struct {
    at::Tensor features;
    const char* message;
  } cases[] = {
      {Features(5, 16).view({5, 4, 2, 2}), "takes 3 channels (in_channels), its input [5, 4, 2, 2] has 4"},
      {Features(5, 12), "SHOULD_FLATTEN_FEATS: False"},
      {Features(5, 27).view({5, 3, 3, 3}), "takes 12 features (dims[0]), its input [5, 3, 3, 3] has 27"},
  };
  for (const auto& [features, message] : cases) {
    try {
      head->Forward(features);
      ADD_FAILURE() << "no error: " << message;
    } catch (const c10::ValueError& error) {
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr(message));
    }
  }
}

TEST(EvalMlp, MissingArguments_AreRefused) {
  EvalMlpOptions options = EvalOptions();
  options.in_channels = 0;
  EXPECT_THAT(MakeEvalMlp(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("eval_mlp.in_channels is missing")));
  options.dims = {6};
  EXPECT_THAT(MakeEvalMlp(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("eval_mlp.dims has 1 widths")));
}

TEST(Mlp, OneWidth_IsRefused) {
  MlpOptions options;
  options.dims = {6};
  EXPECT_THAT(MakeMlp(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mlp.dims has 1 widths")));
}

}  // namespace
}  // namespace ssl
