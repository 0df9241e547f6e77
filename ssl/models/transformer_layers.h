// SPDX-License-Identifier: Apache-2.0
//
// What blocks of transformers are made of, beside linear layers. Names and initialisation are VISSL's (timm's), random
// numbers of training those of the run (ssl/core/generator_scope.h).
#ifndef SSL_MODELS_TRANSFORMER_LAYERS_H_
#define SSL_MODELS_TRANSFORMER_LAYERS_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "ssl/models/layers.h"
#include "ssl/models/model_tensor.h"

namespace ssl {

// Normalises each token by its own mean and variance (arXiv 1607.06450).
struct LayerNormLayer {
  at::Tensor weight;  // [width]
  at::Tensor bias;    // [width]
  double eps = 1e-6;

  // tokens: [..., width].
  at::Tensor Forward(const at::Tensor& tokens) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

LayerNormLayer MakeLayerNorm(int64_t width);

// layer.Forward for tokens [B, N, in], as one product of all of them.
at::Tensor ForwardTokens(const LinearLayer& layer, const at::Tensor& tokens);

// fc2(gelu(fc1(x))) for each token, with dropout behind both.
struct FeedForward {
  LinearLayer fc1;
  LinearLayer fc2;
  double dropout_rate = 0.0;

  // tokens: [B, N, width].
  at::Tensor Forward(const at::Tensor& tokens, bool training) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

FeedForward MakeFeedForward(int64_t width, int64_t hidden_width, double dropout_rate, at::Generator& generator);

// A convolution with a bias, as torch initialises it: both uniform in +-1/sqrt(fan_in). Padding kernel / 2.
ConvLayer MakeBiasedConv(const ConvShape& shape, at::Generator& generator);

// Stochastic depth (arXiv 1603.09382): in training, a residual branch [B, ...] is zero for an image with the
// probability `rate`, and else divided by 1 - rate. Draws one number for each image, on the CPU wherever the branch is,
// so that devices and second passes agree.
at::Tensor DropPath(const at::Tensor& branch, double rate, bool training);

}  // namespace ssl

#endif  // SSL_MODELS_TRANSFORMER_LAYERS_H_
