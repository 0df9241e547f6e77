// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/xcit_blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

constexpr double kUnitEps = 1e-12;  // as torch.nn.functional.normalize
// Of positions, as the authors' code has them.
constexpr int64_t kPositionDims = 32;  // of each axis
constexpr double kTemperature = 10000.0;
constexpr double kPositionEps = 1e-6;
constexpr double kFullTurn = 6.283185307179586;

at::Tensor UnitLength(const at::Tensor& rows) { return rows / rows.norm(2, -1, /*keepdim=*/true).clamp_min(kUnitEps); }

at::Tensor MakeGamma(const XcitBlockShape& shape) {
  return at::full({shape.attention.width}, shape.eta, at::kFloat).requires_grad_();
}

// Sines and cosines of places 1 to `count` of an axis: [count, kPositionDims]. Computed on the device: each step
// would wait for a copy of the host's.
at::Tensor AxisPositions(int64_t count, const at::Device& device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor places = at::arange(1, count + 1, options) / (static_cast<double>(count) + kPositionEps);
  const at::Tensor exponents = at::arange(kPositionDims, options).div(2, "floor") * 2 / kPositionDims;
  const at::Tensor angles = (places * kFullTurn).unsqueeze(1) / at::pow(kTemperature, exponents);
  return at::stack({angles.slice(1, 0, {}, 2).sin(), angles.slice(1, 1, {}, 2).cos()}, 2).flatten(1);
}

// [1, 2 kPositionDims, height, width]: of rows, then of columns.
at::Tensor Positions(int64_t height, int64_t width, const at::Device& device) {
  const at::Tensor rows = AxisPositions(height, device).unsqueeze(1).expand({height, width, kPositionDims});
  const at::Tensor columns = AxisPositions(width, device).unsqueeze(0).expand({height, width, kPositionDims});
  return at::cat({rows, columns}, 2).permute({2, 0, 1}).unsqueeze(0);
}

void ListGamma(const std::string& name, const at::Tensor& gamma, ModelTensors* tensors) {
  tensors->push_back({name, gamma, TensorRole::kWeight});
}

}  // namespace

at::Tensor TokensOfMap(const at::Tensor& map) { return map.flatten(2).transpose(1, 2); }

at::Tensor MapOfTokens(const at::Tensor& tokens, int64_t height, int64_t width) {
  return tokens.transpose(1, 2).unflatten(2, {height, width});
}

at::Tensor CrossCovarianceAttention::Forward(const at::Tensor& tokens, bool training) const {
  const at::Tensor joined = ForwardTokens(qkv, tokens)
                                .view({tokens.size(0), tokens.size(1), 3, shape.num_heads, -1})
                                .permute({2, 0, 3, 4, 1});
  const at::Tensor queries = UnitLength(joined.select(0, 0));
  const at::Tensor keys = UnitLength(joined.select(0, 1));
  const at::Tensor products = at::matmul(queries, keys.transpose(-2, -1)) * temperature;
  const at::Tensor weights = at::dropout(products.softmax(-1), shape.attention_rate, training);
  const at::Tensor output = at::matmul(weights, joined.select(0, 2)).permute({0, 3, 1, 2}).flatten(2);
  return at::dropout(ForwardTokens(proj, output), shape.dropout_rate, training);
}

void CrossCovarianceAttention::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "temperature", temperature, TensorRole::kWeight});
  qkv.List(prefix + "qkv.", tensors);
  proj.List(prefix + "proj.", tensors);
}

at::Tensor LocalPatchInteraction::Forward(const at::Tensor& map, NormMode mode) const {
  return conv2.Forward(norm.Forward(at::gelu(conv1.Forward(map)), mode));
}

void LocalPatchInteraction::List(const std::string& prefix, ModelTensors* tensors) const {
  conv1.List(prefix + "conv1.", tensors);
  norm.List(prefix + "bn.", tensors);
  conv2.List(prefix + "conv2.", tensors);
}

at::Tensor CrossCovarianceBlock::Forward(const at::Tensor& map, NormMode mode) const {
  const bool training = mode != NormMode::kEvaluation;
  at::Tensor tokens = TokensOfMap(map);
  const auto add = [&](const at::Tensor& branch) { tokens = tokens + DropPath(branch, drop_path_rate, training); };
  add(attention.Forward(norm1.Forward(tokens), training) * gamma1);
  const at::Tensor normalised = MapOfTokens(norm3.Forward(tokens), map.size(2), map.size(3));
  add(TokensOfMap(interaction.Forward(normalised, mode)) * gamma3);
  add(feed_forward.Forward(norm2.Forward(tokens), training) * gamma2);
  return MapOfTokens(tokens, map.size(2), map.size(3));
}

void CrossCovarianceBlock::List(const std::string& prefix, ModelTensors* tensors) const {
  ListGamma(prefix + "gamma1", gamma1, tensors);
  ListGamma(prefix + "gamma2", gamma2, tensors);
  ListGamma(prefix + "gamma3", gamma3, tensors);
  norm1.List(prefix + "norm1.", tensors);
  attention.List(prefix + "attn.", tensors);
  norm2.List(prefix + "norm2.", tensors);
  feed_forward.List(prefix + "mlp.", tensors);
  norm3.List(prefix + "norm3.", tensors);
  interaction.List(prefix + "local_mp.", tensors);
}

CrossCovarianceBlock MakeCrossCovarianceBlock(const XcitBlockShape& shape, at::Generator& generator) {
  const AttentionShape& of_attention = shape.attention;
  const int64_t width = of_attention.width;
  CrossCovarianceBlock block;
  for (LayerNormLayer* norm : {&block.norm1, &block.norm2, &block.norm3}) *norm = MakeLayerNorm(width);
  for (at::Tensor* gamma : {&block.gamma1, &block.gamma2, &block.gamma3}) *gamma = MakeGamma(shape);
  block.attention.qkv = MakeNormalLinear(width, 3 * width, of_attention.qkv_bias, generator);
  block.attention.proj = MakeNormalLinear(width, width, /*use_bias=*/true, generator);
  block.attention.temperature = at::ones({of_attention.num_heads, 1, 1}, at::kFloat).requires_grad_();
  block.attention.shape = of_attention;
  block.feed_forward = MakeFeedForward(width, shape.mlp_dim, of_attention.dropout_rate, generator);
  const ConvShape conv = {width, width, /*kernel=*/3, /*stride=*/1, /*groups=*/width};
  block.interaction = {MakeBiasedConv(conv, generator), MakeBatchNorm(width), MakeBiasedConv(conv, generator)};
  block.drop_path_rate = shape.drop_path_rate;
  return block;
}

at::Tensor ClassAttentionBlock::Forward(const at::Tensor& tokens, bool training) const {
  const int64_t patches = tokens.size(1) - 1;
  const at::Tensor first = norm1.Forward(tokens);
  QueriesKeysValues inputs = attention.Split(first);
  inputs.queries = inputs.queries.narrow(2, 0, 1);
  const at::Tensor attended = at::cat({attention.Attend(inputs, training), first.narrow(1, 1, patches)}, 1);
  const at::Tensor middle = tokens + attended * gamma1;
  const at::Tensor second = tokens_norm
                                ? norm2.Forward(middle)
                                : at::cat({norm2.Forward(middle.narrow(1, 0, 1)), middle.narrow(1, 1, patches)}, 1);
  const at::Tensor fed = feed_forward.Forward(second.narrow(1, 0, 1), training) * gamma2;
  return second + at::cat({fed, second.narrow(1, 1, patches)}, 1);
}

void ClassAttentionBlock::List(const std::string& prefix, ModelTensors* tensors) const {
  ListGamma(prefix + "gamma1", gamma1, tensors);
  ListGamma(prefix + "gamma2", gamma2, tensors);
  norm1.List(prefix + "norm1.", tensors);
  attention.List(prefix + "attn.", tensors);
  norm2.List(prefix + "norm2.", tensors);
  feed_forward.List(prefix + "mlp.", tensors);
}

ClassAttentionBlock MakeClassAttentionBlock(const XcitBlockShape& shape, at::Generator& generator) {
  ClassAttentionBlock block;
  for (LayerNormLayer* norm : {&block.norm1, &block.norm2}) *norm = MakeLayerNorm(shape.attention.width);
  for (at::Tensor* gamma : {&block.gamma1, &block.gamma2}) *gamma = MakeGamma(shape);
  block.attention = MakeSelfAttention(shape.attention, generator);
  block.feed_forward = MakeFeedForward(shape.attention.width, shape.mlp_dim, shape.attention.dropout_rate, generator);
  block.tokens_norm = shape.tokens_norm;
  return block;
}

at::Tensor ConvEmbedding::Forward(const at::Tensor& images, NormMode mode) const {
  at::Tensor map = images;
  for (size_t i = 0; i < layers.size(); ++i) {
    map = layers[i].Forward(i == 0 ? map : at::gelu(map), mode);
  }
  const at::Tensor& weight = position_projection.weight;
  const at::Tensor positions = Positions(map.size(2), map.size(3), weight.device()).to(weight.scalar_type());
  return at::dropout(map + position_projection.Forward(positions), dropout_rate, mode != NormMode::kEvaluation);
}

void ConvEmbedding::List(ModelTensors* tensors) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string prefix = absl::StrCat("patch_embed.proj.", 2 * i, ".");  // GELU between them is counted, too
    layers[i].conv.List(prefix + "0.", tensors);
    ListNorm(layers[i].norm, prefix + "1.", tensors);
  }
  position_projection.List("pos_embeder.token_projection.", tensors);
}

ConvEmbedding MakeConvEmbedding(int64_t channels, int64_t patch_size, int64_t width, double dropout_rate,
                                at::Generator& generator) {
  ConvEmbedding embedding;
  for (int64_t divisor = patch_size / 2; divisor >= 1; divisor /= 2) {
    const ConvShape shape = {channels, width / divisor, /*kernel=*/3, /*stride=*/2, /*groups=*/1};
    embedding.layers.push_back({MakeConv(shape, ConvInit::kKaimingUniform, generator), MakeBatchNorm(shape.out)});
    channels = shape.out;
  }
  embedding.position_projection = MakeBiasedConv({2 * kPositionDims, width, 1, 1, 1}, generator);
  embedding.dropout_rate = dropout_rate;
  return embedding;
}

}  // namespace ssl
