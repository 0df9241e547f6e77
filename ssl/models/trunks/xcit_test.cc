// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/xcit.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/default_generators.h"
#include "ssl/core/autocast.h"
#include "ssl/core/generator_scope.h"
#include "ssl/models/trunks/testing/trunk_probe.h"
#include "ssl/models/trunks/xcit_blocks.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

XcitOptions Small() {
  XcitOptions options;
  options.patch_size = 8;
  options.hidden_dim = 16;
  options.num_layers = 2;
  options.num_heads = 2;
  options.mlp_ratio = 1.5;
  options.drop_path_rate = 0.0;
  return options;
}

std::unique_ptr<Trunk> Make(const XcitOptions& options, int64_t seed = 0) {
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeXcit(options, seed);
  EXPECT_OK(trunk);
  return trunk.ok() ? *std::move(trunk) : nullptr;
}

int64_t CountParameters(const Trunk& trunk) {
  int64_t count = 0;
  for (const ModelTensor& entry : trunk.Tensors()) count += entry.role == TensorRole::kBuffer ? 0 : entry.value.numel();
  return count;
}

TEST(Xcit, Parameters_AreThePapers) {
  const std::unique_ptr<Trunk> small = Make({});  // XCiT-S12/16, VISSL's defaults
  EXPECT_EQ(CountParameters(*small), 25868304) << "timm's xcit_small_12_p16_224 without its classifier";
  EXPECT_EQ(small->output_dim(), 384);
  EXPECT_EQ(small->num_blocks(), 1u + 12 + 2 + 1) << "two blocks of class attention, whatever the number of layers";
  EXPECT_EQ(FindTensor(*small, "patch_embed.proj.0.0.weight").sizes(), at::IntArrayRef({48, 3, 3, 3}));
  EXPECT_EQ(FindTensor(*small, "patch_embed.proj.6.0.weight").sizes(), at::IntArrayRef({384, 192, 3, 3}));
}

TEST(Xcit, StartsAsTheAuthors) {
  XcitOptions options;
  options.num_layers = 1;
  options.eta = 0.5;
  const at::Tensor state = GeneratorState();
  const std::unique_ptr<Trunk> trunk = Make(options);
  EXPECT_TRUE(at::equal(GeneratorState(), state)) << "a generator of its own";
  for (const char* name :
       {"blocks.0.attn.qkv.weight", "blocks.0.mlp.fc1.weight", "cls_attn_blocks.1.attn.proj.weight"}) {
    EXPECT_NEAR(FindTensor(*trunk, name).std().item<double>(), 0.02, 5e-4) << name;
  }
  EXPECT_NEAR(FindTensor(*trunk, "cls_token").std().item<double>(), 0.02, 3e-3);
  const std::pair<const char*, double> constants[] = {
      {"blocks.0.attn.qkv.bias", 0.0},   {"blocks.0.attn.temperature", 1.0},   {"blocks.0.gamma3", 0.5},
      {"cls_attn_blocks.0.gamma2", 0.5}, {"blocks.0.local_mp.bn.weight", 1.0}, {"norm.weight", 1.0}};
  for (const auto& [name, value] : constants) {
    EXPECT_TRUE(at::equal(FindTensor(*trunk, name), at::full_like(FindTensor(*trunk, name), value))) << name;
  }
  EXPECT_NEAR(FindTensor(*trunk, "blocks.0.local_mp.conv1.weight").abs().max().item<double>(), 1.0 / 3, 0.01);
}

// The definition, number by number: tokens [N, C] of one image.
at::Tensor NaiveCrossCovariance(const CrossCovarianceAttention& attention, const at::Tensor& tokens) {
  const int64_t width = tokens.size(1);
  const int64_t head_width = width / attention.shape.num_heads;
  const auto column = [&](int64_t row) {
    return (tokens * attention.qkv.weight[row]).sum(1) + attention.qkv.bias[row];
  };
  const auto unit = [](const at::Tensor& values) { return values / values.pow(2).sum().sqrt(); };
  at::Tensor joined = at::zeros(tokens.sizes(), at::kDouble);
  for (int64_t channel = 0; channel < width; ++channel) {
    const int64_t head = channel / head_width;
    at::Tensor sum = at::zeros({}, at::kDouble);
    at::Tensor mixed = at::zeros({tokens.size(0)}, at::kDouble);
    for (int64_t other = head * head_width; other < (head + 1) * head_width; ++other) {
      const at::Tensor product = (unit(column(channel)) * unit(column(width + other))).sum();
      const at::Tensor weight = (product * attention.temperature[head][0][0]).exp();
      sum = sum + weight;
      mixed = mixed + weight * column(2 * width + other);
    }
    joined.select(1, channel).copy_(mixed / sum);
  }
  at::Tensor output = at::zeros(tokens.sizes(), at::kDouble);
  for (int64_t row = 0; row < width; ++row) {
    output.select(1, row).copy_((joined * attention.proj.weight[row]).sum(1) + attention.proj.bias[row]);
  }
  return output;
}

TEST(CrossCovarianceAttention, IsItsDefinition) {
  at::Generator generator = MakeGenerator(1);
  const auto normal = [&generator](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::kFloat).to(at::kDouble);
  };
  CrossCovarianceAttention attention;
  attention.shape = {/*width=*/6, /*num_heads=*/2, true, 0.0, 0.0, 0.0};
  attention.qkv = {normal({18, 6}).requires_grad_(), normal({18})};
  attention.proj = {normal({6, 6}), normal({6})};
  attention.temperature = (normal({2, 1, 1}) + 2).requires_grad_();
  const at::Tensor tokens = normal({3, 5, 6});
  const at::Tensor output = attention.Forward(tokens, /*training=*/true);
  const at::Tensor factors = normal({3, 5, 6});
  (output * factors).sum().backward();
  const at::Tensor of_weight = attention.qkv.weight.grad().clone();
  const at::Tensor of_temperature = attention.temperature.grad().clone();
  attention.qkv.weight.mutable_grad() = at::Tensor();
  attention.temperature.mutable_grad() = at::Tensor();
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (int64_t image = 0; image < 3; ++image) {
    const at::Tensor expected = NaiveCrossCovariance(attention, tokens[image]);
    EXPECT_TRUE(at::allclose(output[image], expected, 1e-11, 1e-11));
    sum = sum + (expected * factors[image]).sum();
  }
  sum.backward();
  EXPECT_TRUE(at::allclose(of_weight, attention.qkv.weight.grad(), 1e-10, 1e-10));
  EXPECT_TRUE(at::allclose(of_temperature, attention.temperature.grad(), 1e-10, 1e-10));
}

TEST(Xcit, FeaturesAreOfAnyResolution) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  trunk->SetTraining(false);
  EXPECT_THAT(trunk->feature_names(), ElementsAre("lastMAP", "lastCLS"));
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{32, 32}, {48, 24}, {36, 20}}) {
    const at::Tensor images = WaveImages(2, height, width);
    const std::vector<at::Tensor> features = trunk->Features(images, {"lastCLS", "lastMAP"});
    EXPECT_EQ(features[1].sizes(), at::IntArrayRef({2, 16, (height + 7) / 8, (width + 7) / 8}));
    EXPECT_TRUE(at::equal(features[0], trunk->Forward(images)));
  }
  EXPECT_THROW(trunk->Features(WaveImages(2, 32, 32), {"blkCLS0"}), c10::ValueError);
}

TEST(Xcit, DropPath_IsThatOfEveryBlock) {
  XcitOptions options = Small();
  options.drop_path_rate = 0.6;
  const std::unique_ptr<Trunk> trunk = Make(options);
  const at::NoGradGuard no_grad;
  SeedForBuilding(5, 0);
  const at::Tensor map = trunk->RunBlock(0, WaveImages(600, 16, 16), NormMode::kTraining);
  for (size_t block = 1; block <= 2; ++block) {
    const at::Tensor output = trunk->RunBlock(block, map, NormMode::kTraining);
    const double untouched = (output == map).flatten(1).all(1).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(untouched, std::pow(0.6, 3), 0.06) << "all three branches of block " << block << " dropped";
  }
  const at::Tensor class_tokens = trunk->RunBlock(3, map, NormMode::kTraining);
  EXPECT_TRUE(at::equal(trunk->RunBlock(3, map, NormMode::kTraining), class_tokens)) << "class attention draws nothing";
}

TEST(Xcit, RecomputedBlocks_DrawTheSameNumbers) {
  XcitOptions options = Small();
  options.drop_path_rate = 0.5;
  options.dropout_rate = 0.2;
  options.attention_dropout_rate = 0.2;
  const std::unique_ptr<Trunk> plain = Make(options);
  const std::unique_ptr<Trunk> recomputing = Make(options);
  recomputing->SetRecomputed({{{0, 1}, {1, 3}, {3, 5}}});
  const TrainedOnce expected = TrainOnce(*plain);
  const TrainedOnce actual = TrainOnce(*recomputing);
  EXPECT_TRUE(at::equal(actual.output, expected.output));
  for (size_t i = 0; i < expected.left.size(); ++i) EXPECT_TRUE(at::equal(actual.left[i], expected.left[i])) << i;
}

TEST(Xcit, RunsInBFloat16) {
  const std::unique_ptr<Trunk> trunk = Make(Small());
  const at::Tensor expected = trunk->Forward(WaveImages(2, 48, 48)).detach();
  const AutocastScope autocast(Autocast::kBFloat16);
  const at::Tensor output = trunk->Forward(WaveImages(2, 48, 48));
  EXPECT_EQ(output.scalar_type(), at::kFloat) << "norms and sums of branches stay in float32";
  EXPECT_LE((output - expected).abs().max().item<double>(), 0.1 * expected.abs().max().item<double>());
}

TEST(Xcit, OptionsThatContradictEachOther_AreNamed) {
  XcitOptions options = Small();
  options.patch_size = 4;
  EXPECT_THAT(MakeXcit(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("XCIT.PATCH_SIZE is 4, expected 8 or 16")));
  options = Small();
  options.num_heads = 3;
  EXPECT_THAT(MakeXcit(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("XCIT.HIDDEN_DIM is 16, expected a multiple of NUM_HEADS, 3")));
  options = Small();
  options.patch_size = 16;
  options.hidden_dim = 20;
  EXPECT_THAT(MakeXcit(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a multiple of half of PATCH_SIZE, 8")));
  options = Small();
  options.mlp_ratio = 0.01;
  EXPECT_THAT(MakeXcit(options, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("XCIT.MLP_RATIO is 0.01")));
}

}  // namespace
}  // namespace ssl
