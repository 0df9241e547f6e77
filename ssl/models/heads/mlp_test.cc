// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sin.h>

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

TEST(Mlp, OneWidth_IsRefused) {
  MlpOptions options;
  options.dims = {6};
  EXPECT_THAT(MakeMlp(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mlp.dims has 1 widths")));
}

}  // namespace
}  // namespace ssl
