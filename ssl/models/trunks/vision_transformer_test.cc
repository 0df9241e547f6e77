// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/vision_transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/default_generators.h"
#include "ssl/core/autocast.h"
#include "ssl/core/generator_scope.h"
#include "ssl/models/trunks/testing/trunk_probe.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

VisionTransformerOptions Small() {
  VisionTransformerOptions options;
  options.image_size = 32;
  options.patch_size = 8;
  options.num_layers = 3;
  options.num_heads = 2;
  options.hidden_dim = 16;
  options.mlp_dim = 24;
  return options;
}

std::unique_ptr<Trunk> Make(const VisionTransformerOptions& options, int64_t seed = 0) {
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeVisionTransformer(options, seed);
  EXPECT_OK(trunk);
  return trunk.ok() ? *std::move(trunk) : nullptr;
}

std::vector<std::string> Names(const Trunk& trunk) {
  std::vector<std::string> names;
  for (const ModelTensor& entry : trunk.Tensors()) names.push_back(entry.name);
  return names;
}

TEST(VisionTransformer, ParametersAndNames_AreTimms) {
  VisionTransformerOptions options;
  options.qkv_bias = true;
  const std::unique_ptr<Trunk> base = Make(options);
  int64_t count = 0;
  for (const ModelTensor& entry : base->Tensors()) count += entry.value.numel();
  EXPECT_EQ(count, 85798656) << "vit_base_patch16_224 without its classifier";
  EXPECT_EQ(FindTensor(*base, "pos_embed").sizes(), at::IntArrayRef({1, 197, 768}));
  EXPECT_EQ(FindTensor(*base, "blocks.11.mlp.fc1.weight").sizes(), at::IntArrayRef({3072, 768}));
  EXPECT_EQ(base->output_dim(), 768);
}

TEST(VisionTransformer, OptionalTensors_AreThereWhenAskedFor) {
  const std::vector<std::string> names = Names(*Make(Small()));
  EXPECT_EQ(names.size(), 4u + 3 * 11 + 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "blocks.0.attn.qkv.bias"), 0);
  VisionTransformerOptions options = Small();
  options.use_class_token = false;
  options.qkv_bias = true;
  const std::unique_ptr<Trunk> trunk = Make(options);
  const std::vector<std::string> others = Names(*trunk);
  EXPECT_EQ(std::count(others.begin(), others.end(), "cls_token"), 0);
  EXPECT_EQ(FindTensor(*trunk, "pos_embed").sizes(), at::IntArrayRef({1, 16, 16}));
  EXPECT_EQ(FindTensor(*trunk, "blocks.0.attn.qkv.bias").sizes(), at::IntArrayRef({48}));
}

TEST(VisionTransformer, StartsAsVissls) {
  VisionTransformerOptions options;
  options.num_layers = 1;
  const at::Tensor state = GeneratorState();
  const std::unique_ptr<Trunk> trunk = Make(options);
  EXPECT_TRUE(at::equal(GeneratorState(), state)) << "a generator of its own";
  for (const char* name : {"pos_embed", "blocks.0.attn.qkv.weight", "blocks.0.attn.proj.weight",
                           "blocks.0.mlp.fc1.weight", "blocks.0.mlp.fc2.weight"}) {
    EXPECT_NEAR(FindTensor(*trunk, name).std().item<double>(), 0.02, 5e-4) << name;
  }
  EXPECT_NEAR(FindTensor(*trunk, "cls_token").std().item<double>(), 0.02, 2e-3);
  for (const char* name : {"blocks.0.attn.proj.bias", "blocks.0.mlp.fc1.bias", "blocks.0.mlp.fc2.bias", "norm.bias"}) {
    EXPECT_TRUE(at::equal(FindTensor(*trunk, name), at::zeros_like(FindTensor(*trunk, name)))) << name;
  }
  EXPECT_TRUE(at::equal(FindTensor(*trunk, "norm.weight"), at::ones_like(FindTensor(*trunk, "norm.weight"))));
  EXPECT_NEAR(FindTensor(*trunk, "patch_embed.proj.weight").abs().max().item<double>(), 1.0 / 27.7128, 1e-4);
  EXPECT_FALSE(at::equal(FindTensor(*Make(options, 1), "pos_embed"), FindTensor(*trunk, "pos_embed")));
}

TEST(VisionTransformer, TakesOtherResolutions) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  trunk->SetTraining(false);
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{32, 32}, {16, 16}, {48, 24}, {35, 33}}) {
    const std::vector<at::Tensor> features = trunk->Features(WaveImages(2, height, width), {"lastMAP", "lastBLK"});
    EXPECT_EQ(features[0].sizes(), at::IntArrayRef({2, 16, height / 8, width / 8}));
    EXPECT_EQ(features[1].size(1), 1 + (height / 8) * (width / 8));
  }
  EXPECT_THROW(trunk->Forward(WaveImages(2, 7, 32)), c10::ValueError);
}

TEST(VisionTransformer, PositionsThatAreAllTheSame_StaySoAtAnyResolution) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  trunk->SetTraining(false);
  const at::NoGradGuard no_grad;
  FindTensor(*trunk, "pos_embed").fill_(0.25);
  FindTensor(*trunk, "patch_embed.proj.weight").zero_();
  const at::Tensor tokens = trunk->RunBlock(0, WaveImages(1, 48, 24), NormMode::kEvaluation);
  EXPECT_TRUE(at::allclose(tokens.narrow(1, 1, 18), tokens.narrow(1, 1, 1).expand({1, 18, 16}), 1e-6, 1e-6));
}

TEST(VisionTransformer, Features_AreOfTheNormalisedBlocks) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  trunk->SetTraining(false);
  const at::Tensor images = WaveImages(2, 32, 32);
  at::Tensor tokens = images;
  std::vector<at::Tensor> normalised;
  for (size_t block = 0; block < 4; ++block) {
    tokens = trunk->RunBlock(block, tokens, NormMode::kEvaluation);
    normalised.push_back(trunk->RunBlock(4, tokens, NormMode::kEvaluation));
  }
  const std::vector<at::Tensor> features =
      trunk->Features(images, {"lastCLS", "blkCLS0", "concatCLS2", "lastMAP", "lastCLS"});
  EXPECT_TRUE(at::equal(features[0], trunk->Forward(images)));
  EXPECT_TRUE(at::equal(features[1], normalised[1].select(1, 0)));
  EXPECT_TRUE(at::equal(features[2].narrow(1, 0, 16), normalised[2].select(1, 0)));
  EXPECT_TRUE(at::equal(features[3].flatten(2).transpose(1, 2), normalised[3].narrow(1, 1, 16)));
  EXPECT_TRUE(at::equal(features[4], features[0]));
  EXPECT_THROW(trunk->Features(images, {"res5"}), c10::ValueError);
}

TEST(VisionTransformer, DropPath_GrowsLinearlyWithDepth) {
  VisionTransformerOptions options = Small();
  options.drop_path_rate = 0.8;
  const std::unique_ptr<Trunk> trunk = Make(options);
  const at::Tensor tokens = trunk->RunBlock(0, WaveImages(600, 8, 8), NormMode::kTraining).detach();
  SeedForBuilding(5, 0);
  for (size_t layer = 0; layer < 3; ++layer) {
    const at::Tensor output = trunk->RunBlock(layer + 1, tokens, NormMode::kTraining);
    const double untouched = (output == tokens).flatten(1).all(1).to(at::kDouble).mean().item<double>();
    const double rate = 0.4 * static_cast<double>(layer);
    EXPECT_NEAR(untouched, rate * rate, 0.07) << "both branches of layer " << layer << " dropped";
    EXPECT_FALSE(at::equal(trunk->RunBlock(layer + 1, tokens, NormMode::kEvaluation), tokens));
  }
}

TEST(VisionTransformer, RecomputedBlocks_DrawTheSameNumbers) {
  VisionTransformerOptions options = Small();
  options.drop_path_rate = 0.5;
  options.dropout_rate = 0.2;
  options.attention_dropout_rate = 0.2;
  const std::unique_ptr<Trunk> plain = Make(options);
  const std::unique_ptr<Trunk> recomputing = Make(options);
  recomputing->SetRecomputed({{{0, 1}, {1, 3}, {3, 4}}});
  const TrainedOnce expected = TrainOnce(*plain);
  const TrainedOnce actual = TrainOnce(*recomputing);
  EXPECT_TRUE(at::equal(actual.output, expected.output));
  for (size_t i = 0; i < expected.left.size(); ++i) {
    EXPECT_TRUE(at::equal(actual.left[i], expected.left[i])) << i;
  }
  plain->SetTraining(false);
  EXPECT_FALSE(at::allclose(plain->Forward(WaveImages(4, 32, 32)), expected.output)) << "training drops something";
}

TEST(VisionTransformer, RunsInBFloat16) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  const at::Tensor expected = trunk->Forward(WaveImages(2, 48, 48)).detach();
  const AutocastScope autocast(Autocast::kBFloat16);
  const at::Tensor output = trunk->Forward(WaveImages(2, 48, 48));
  EXPECT_EQ(output.scalar_type(), at::kFloat) << "norms and sums of branches stay in float32";
  EXPECT_FALSE(at::equal(output, expected));
  EXPECT_LE((output - expected).abs().max().item<double>(), 0.03 * expected.abs().max().item<double>());
}

TEST(VisionTransformer, TakesTheChannelsOfTheImages) {
  VisionTransformerOptions options = Small();
  options.input_channels = 1;
  EXPECT_EQ(Make(options)->Forward(WaveImages(2, 32, 32, 1)).sizes(), at::IntArrayRef({2, 16}));
}

TEST(VisionTransformer, OptionsThatContradictEachOther_AreNamed) {
  VisionTransformerOptions options = Small();
  options.num_heads = 3;
  EXPECT_THAT(MakeVisionTransformer(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("VISION_TRANSFORMERS.HIDDEN_DIM is 16, expected a multiple of NUM_HEADS, 3")));
  options = Small();
  options.patch_size = 64;
  EXPECT_THAT(MakeVisionTransformer(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("IMAGE_SIZE is 32, expected at least")));
  options = Small();
  options.qk_scale = ConfigNode::FromString("small");
  EXPECT_THAT(MakeVisionTransformer(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("VISION_TRANSFORMERS.QK_SCALE is ")));
}

}  // namespace
}  // namespace ssl
