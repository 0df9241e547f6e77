// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/swav_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor Features(int64_t rows, int64_t width) {
  return at::sin(at::arange(rows * width, at::kFloat) * 0.7).view({rows, width});
}

SwavHeadOptions Options() {
  SwavHeadOptions options;
  options.dims = {6, 8, 4};
  options.use_bn = true;
  options.num_clusters = {5, 3};
  return options;
}

std::unique_ptr<Head> Make(const SwavHeadOptions& options) {
  absl::StatusOr<std::unique_ptr<Head>> head = MakeSwavHead(options, HeadSection(), 0);
  EXPECT_OK(head);
  return head.ok() ? *std::move(head) : nullptr;
}

std::vector<std::string> NamesOf(const Head& head) {
  std::vector<std::string> names;
  for (const ModelTensor& entry : head.Tensors()) names.push_back(entry.name);
  return names;
}

TEST(SwavHead, Outputs_AreUnitEmbeddingsAndTheirScores) {
  const std::unique_ptr<Head> head = Make(Options());
  const std::vector<at::Tensor> outputs = head->Forward(Features(7, 6));
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef({7, 4}));
  EXPECT_TRUE(at::allclose(outputs[0].pow(2).sum(1), at::ones({7})));
  const ModelTensors tensors = head->Tensors();
  EXPECT_EQ(tensors.back().name, "prototypes1.weight");
  EXPECT_TRUE(at::allclose(outputs[2], at::linear(outputs[0], tensors.back().value)));
}

TEST(SwavHead, Names_AreVissls) {
  EXPECT_EQ(
      NamesOf(*Make(Options())),
      (std::vector<std::string>{
          "projection_head.0.weight", "projection_head.0.bias", "projection_head.1.weight", "projection_head.1.bias",
          "projection_head.1.running_mean", "projection_head.1.running_var", "projection_head.1.num_batches_tracked",
          "projection_head.3.weight", "projection_head.3.bias", "prototypes0.weight", "prototypes1.weight"}));
}

TEST(SwavHead, LastBatchNorm_ComesOnRequest) {
  SwavHeadOptions options = Options();
  options.skip_last_bn = false;
  options.use_bias = false;
  const std::vector<std::string> names = NamesOf(*Make(options));
  EXPECT_EQ(names[0], "projection_head.0.weight");
  EXPECT_EQ(names[1], "projection_head.1.weight") << "no bias";
  EXPECT_EQ(names[7], "projection_head.4.weight") << "activation between";
}

TEST(SwavHead, LastActivation_ComesWithTheLastBatchNorm) {
  SwavHeadOptions options = Options();
  options.normalize_feats = false;
  EXPECT_LT(Make(options)->Forward(Features(7, 6))[0].min().item<float>(), 0.0f);
  options.skip_last_bn = false;
  EXPECT_GE(Make(options)->Forward(Features(7, 6))[0].min().item<float>(), 0.0f);
  options.use_bn = false;
  EXPECT_GE(Make(options)->Forward(Features(7, 6))[0].min().item<float>(), 0.0f);
}

TEST(SwavHead, WeightNorm_IsRefusedByName) {
  SwavHeadOptions options = Options();
  options.use_weight_norm_prototypes = true;
  EXPECT_THAT(MakeSwavHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("swav_head.use_weight_norm_prototypes is true")));
  options.use_weight_norm_prototypes = false;
  options.normalize_last_layer = true;
  EXPECT_THAT(MakeSwavHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("swav_head.normalize_last_layer is true")));
}

TEST(SwavHead, WithoutEmbeddings_ReturnsScoresOnly) {
  SwavHeadOptions options = Options();
  options.return_embeddings = false;
  const std::unique_ptr<Head> head = Make(options);
  EXPECT_EQ(head->Forward(Features(7, 6)).size(), 2u);
  EXPECT_EQ(head->OutputDim(6), 5);
}

TEST(SwavHead, WithoutNormalization_EmbeddingsKeepTheirLength) {
  SwavHeadOptions options = Options();
  options.normalize_feats = false;
  options.activation_name = "GELU";
  const at::Tensor lengths = Make(options)->Forward(Features(7, 6))[0].pow(2).sum(1);
  EXPECT_FALSE(at::allclose(lengths, at::ones({7}), 1e-2, 1e-2));
}

TEST(SwavHead, UnderAutocast_ScoresAreFloat32ProductsOfTheEmbeddings) {
  const std::unique_ptr<Head> head = Make(Options());
  std::vector<at::Tensor> outputs;
  {
    const AutocastScope autocast(Autocast::kBFloat16);
    outputs = head->Forward(Features(7, 6));
  }
  EXPECT_EQ(outputs[0].scalar_type(), at::kFloat);
  EXPECT_EQ(outputs[1].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(outputs[0].pow(2).sum(1), at::ones({7}), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(outputs[2], at::linear(outputs[0], head->Tensors().back().value)));
}

TEST(SwavHead, Evaluation_UsesRunningStatistics) {
  const std::unique_ptr<Head> head = Make(Options());
  head->SetTraining(false);
  const at::Tensor features = Features(7, 6);
  EXPECT_TRUE(
      at::allclose(head->Forward(features)[1].narrow(0, 2, 1), head->Forward(features.narrow(0, 2, 1))[1], 1e-4, 1e-5));
}

TEST(SwavHead, OneWidth_IsRefused) {
  SwavHeadOptions options = Options();
  options.dims = {6};
  EXPECT_THAT(MakeSwavHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("swav_head.dims has 1 widths")));
}

TEST(SwavHead, NothingToReturn_IsRefused) {
  SwavHeadOptions options = Options();
  options.num_clusters = {};
  options.return_embeddings = false;
  EXPECT_THAT(MakeSwavHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing to return")));
}

}  // namespace
}  // namespace ssl
