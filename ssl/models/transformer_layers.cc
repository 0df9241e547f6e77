// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/transformer_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

namespace ssl {

at::Tensor LayerNormLayer::Forward(const at::Tensor& tokens) const {
  return at::layer_norm(tokens, weight.sizes(), weight, bias, eps);
}

void LayerNormLayer::List(const std::string& prefix, ModelTensors* tensors) const {
  tensors->push_back({prefix + "weight", weight, TensorRole::kNorm});
  tensors->push_back({prefix + "bias", bias, TensorRole::kNorm});
}

LayerNormLayer MakeLayerNorm(int64_t width) {
  LayerNormLayer layer;
  layer.weight = at::ones({width}, at::kFloat).requires_grad_();
  layer.bias = at::zeros({width}, at::kFloat).requires_grad_();
  return layer;
}

at::Tensor ForwardTokens(const LinearLayer& layer, const at::Tensor& tokens) {
  return layer.Forward(tokens.flatten(0, 1)).unflatten(0, {tokens.size(0), tokens.size(1)});
}

at::Tensor FeedForward::Forward(const at::Tensor& tokens, bool training) const {
  const at::Tensor hidden = at::dropout(at::gelu(ForwardTokens(fc1, tokens)), dropout_rate, training);
  return at::dropout(ForwardTokens(fc2, hidden), dropout_rate, training);
}

void FeedForward::List(const std::string& prefix, ModelTensors* tensors) const {
  fc1.List(prefix + "fc1.", tensors);
  fc2.List(prefix + "fc2.", tensors);
}

FeedForward MakeFeedForward(int64_t width, int64_t hidden_width, double dropout_rate, at::Generator& generator) {
  FeedForward layers;
  layers.fc1 = MakeNormalLinear(width, hidden_width, /*use_bias=*/true, generator);
  layers.fc2 = MakeNormalLinear(hidden_width, width, /*use_bias=*/true, generator);
  layers.dropout_rate = dropout_rate;
  return layers;
}

ConvLayer MakeBiasedConv(const ConvShape& shape, at::Generator& generator) {
  ConvLayer layer = MakeConv(shape, ConvInit::kKaimingUniform, generator);
  const double bound = 1.0 / std::sqrt(static_cast<double>(layer.weight[0].numel()));
  layer.bias = at::empty({shape.out}, at::kFloat).uniform_(-bound, bound, generator).requires_grad_();
  return layer;
}

at::Tensor DropPath(const at::Tensor& branch, double rate, bool training) {
  if (!training || rate == 0.0) return branch;
  const double kept = 1.0 - rate;
  std::vector<int64_t> sizes(static_cast<size_t>(branch.dim()), 1);
  sizes[0] = branch.size(0);
  const at::Tensor factors = at::rand(sizes, branch.options().dtype(at::kFloat)).add_(kept).floor_().div_(kept);
  return branch * factors.to(branch.options());
}

}  // namespace ssl
