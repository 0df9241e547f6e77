// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/transformer_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "gtest/gtest.h"
#include "ssl/base/default_generators.h"
#include "ssl/core/generator_scope.h"

namespace ssl {
namespace {

at::Tensor Normal(at::IntArrayRef shape, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  return at::randn(shape, generator, at::kFloat).to(at::kDouble);
}

TEST(TruncatedNormal, HasVisslsDeviation) {
  at::Generator generator = MakeGenerator(3);
  const at::Tensor values = TruncatedNormal({400, 500}, generator);
  EXPECT_NEAR(values.mean().item<double>(), 0.0, 2e-4);
  EXPECT_NEAR(values.std().item<double>(), 0.02, 2e-4);
  EXPECT_TRUE(values.isfinite().all().item<bool>());
  at::Generator same = MakeGenerator(3);
  EXPECT_TRUE(at::equal(TruncatedNormal({400, 500}, same), values));
}

// Number 190 of this seed is the end of the uniform draws, as one of 2^24 is.
TEST(TruncatedNormal, TheEndOfTheDraws_IsInTheTail) {
  constexpr int64_t kSeed = 28587;
  at::Generator generator = MakeGenerator(kSeed);
  const at::Tensor uniform = at::empty({200}, at::kFloat).uniform_(-1.0, 1.0, generator);
  ASSERT_EQ(uniform[190].item<float>(), -1.0F);
  at::Generator same = MakeGenerator(kSeed);
  const at::Tensor values = TruncatedNormal({200}, same);
  EXPECT_LT(values[190].item<double>(), -5.0 * 0.02);
  EXPECT_GT(values[190].item<double>(), -6.0 * 0.02);
}

TEST(MakeNormalLinear, HasTheNormalWeightsAndNoBias) {
  at::Generator generator = MakeGenerator(3);
  const LinearLayer layer = MakeNormalLinear(5, 7, /*use_bias=*/true, generator);
  at::Generator same = MakeGenerator(3);
  EXPECT_TRUE(at::equal(layer.weight.detach(), TruncatedNormal({7, 5}, same)));
  EXPECT_EQ(layer.bias.abs().max().item<double>(), 0.0);
  EXPECT_TRUE(layer.weight.requires_grad() && layer.bias.requires_grad());
  EXPECT_FALSE(MakeNormalLinear(5, 7, /*use_bias=*/false, generator).bias.defined());
}

TEST(LayerNormLayer, NormalisesEachToken) {
  LayerNormLayer layer = MakeLayerNorm(6);
  EXPECT_TRUE(at::equal(layer.weight.detach(), at::ones({6}))) << "as torch starts";
  layer.weight = Normal({6}, 1);
  layer.bias = Normal({6}, 2);
  const at::Tensor tokens = Normal({2, 3, 6}, 3) * 1e-3;  // so that eps counts
  const at::Tensor output = layer.Forward(tokens);
  for (int64_t image = 0; image < 2; ++image) {
    for (int64_t token = 0; token < 3; ++token) {
      const at::Tensor values = tokens[image][token];
      const at::Tensor centred = values - values.mean();
      const double deviation = std::sqrt(centred.pow(2).mean().item<double>() + 1e-6);
      EXPECT_TRUE(at::allclose(output[image][token], centred / deviation * layer.weight + layer.bias, 1e-12, 1e-12));
    }
  }
}

TEST(FeedForward, IsTwoProductsAroundTheExactGelu) {
  at::Generator generator = MakeGenerator(3);
  FeedForward layers = MakeFeedForward(4, 10, /*dropout_rate=*/0.5, generator);
  for (LinearLayer* layer : {&layers.fc1, &layers.fc2}) {
    layer->weight = Normal(layer->weight.sizes(), 4);
    layer->bias = Normal(layer->bias.sizes(), 5);
  }
  const at::Tensor tokens = Normal({2, 3, 4}, 6);
  const at::Tensor hidden = at::matmul(tokens, layers.fc1.weight.t()) + layers.fc1.bias;
  const at::Tensor gelu = hidden * 0.5 * (at::erf(hidden / std::sqrt(2.0)) + 1.0);
  const at::Tensor expected = at::matmul(gelu, layers.fc2.weight.t()) + layers.fc2.bias;
  EXPECT_TRUE(at::allclose(layers.Forward(tokens, /*training=*/false), expected, 1e-12, 1e-12));
  EXPECT_FALSE(at::allclose(layers.Forward(tokens, /*training=*/true), expected)) << "dropout";
}

TEST(MakeBiasedConv, IsTorchsOwnInitialisation) {
  at::Generator generator = MakeGenerator(3);
  const ConvLayer layer = MakeBiasedConv({3, 200, 4, 4, 1}, generator);
  const double bound = 1.0 / std::sqrt(3.0 * 4 * 4);
  for (const at::Tensor& values : {layer.weight, layer.bias}) {
    EXPECT_LE(values.abs().max().item<double>(), bound);
    EXPECT_GT(values.abs().max().item<double>(), 0.97 * bound);
  }
  EXPECT_TRUE(layer.bias.requires_grad());
}

TEST(DropPath, DropsImagesAndScalesTheOthers) {
  constexpr int64_t kImages = 4000;
  SeedForBuilding(1, 0);
  const at::Tensor branch = Normal({kImages, 2, 3}, 1) + 5.0;
  const at::Tensor output = DropPath(branch, 0.3, /*training=*/true);
  const at::Tensor ratio = (output / branch).flatten(1);
  EXPECT_TRUE(at::allclose(ratio, ratio.narrow(1, 0, 1).expand_as(ratio))) << "all of an image or nothing";
  const at::Tensor is_kept = ratio.select(1, 0) > 0.5;
  EXPECT_TRUE(at::allclose(ratio.select(1, 0), is_kept.to(at::kDouble) / 0.7, 1e-6));
  const double share = is_kept.to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(share, 0.7, 4 * std::sqrt(0.3 * 0.7 / kImages));
}

TEST(DropPath, DrawsWhatTheRunDraws) {
  SeedForBuilding(1, 0);
  const at::Tensor state = GeneratorState();
  const at::Tensor branch = Normal({32, 4}, 1);
  const at::Tensor first = DropPath(branch, 0.5, /*training=*/true);
  EXPECT_FALSE(at::equal(DropPath(branch, 0.5, /*training=*/true), first)) << "goes on";
  const GeneratorScope again(state);
  EXPECT_TRUE(at::equal(DropPath(branch, 0.5, /*training=*/true), first));
}

TEST(DropPath, DoesNothingInEvaluationOrWithoutARate) {
  SeedForBuilding(1, 0);
  const at::Tensor state = GeneratorState();
  const at::Tensor branch = Normal({32, 4}, 1);
  EXPECT_TRUE(at::equal(DropPath(branch, 0.5, /*training=*/false), branch));
  EXPECT_TRUE(at::equal(DropPath(branch, 0.0, /*training=*/true), branch));
  EXPECT_TRUE(at::equal(GeneratorState(), state)) << "nothing is drawn";
}

}  // namespace
}  // namespace ssl
