// SPDX-License-Identifier: Apache-2.0
//
// What the cross-covariance image transformer (arXiv 2106.09681) is made of, under the names of its authors' code,
// which VISSL has. Patches go from block to block as a map [B, C, h, w], channels-last: its pixels are the tokens.
#ifndef SSL_MODELS_TRUNKS_XCIT_BLOCKS_H_
#define SSL_MODELS_TRUNKS_XCIT_BLOCKS_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/models/conv_norm.h"
#include "ssl/models/layers.h"
#include "ssl/models/model_tensor.h"
#include "ssl/models/norm_mode.h"
#include "ssl/models/self_attention.h"
#include "ssl/models/transformer_layers.h"

namespace ssl {

struct XcitBlockShape {
  AttentionShape attention;  // the scale is of class attention alone
  int64_t mlp_dim = 0;
  double drop_path_rate = 0.0;  // of cross-covariance blocks
  double eta = 1.0;             // first factors of branches
  bool tokens_norm = true;      // class attention normalises patches, too
};

// Tokens [B, N, C] of a map [B, C, h, w], and back.
at::Tensor TokensOfMap(const at::Tensor& map);
at::Tensor MapOfTokens(const at::Tensor& tokens, int64_t height, int64_t width);

// Attention between the channels of a head: softmax(T q k^T) v with queries and keys [B, heads, C / heads, N] of
// length 1.
struct CrossCovarianceAttention {
  LinearLayer qkv;
  LinearLayer proj;
  at::Tensor temperature;  // [heads, 1, 1]
  AttentionShape shape;

  at::Tensor Forward(const at::Tensor& tokens, bool training) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

// conv(batch_norm(gelu(conv(map)))), 3x3, each channel by itself.
struct LocalPatchInteraction {
  ConvLayer conv1;
  BatchNormLayer norm;
  ConvLayer conv2;

  at::Tensor Forward(const at::Tensor& map, NormMode mode) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

// Three residual branches, each with a norm before it and a factor for each channel behind it.
struct CrossCovarianceBlock {
  LayerNormLayer norm1;
  CrossCovarianceAttention attention;
  LayerNormLayer norm2;
  FeedForward feed_forward;
  LayerNormLayer norm3;
  LocalPatchInteraction interaction;
  at::Tensor gamma1;  // [C]: of attention
  at::Tensor gamma2;  // of feed_forward, which comes last
  at::Tensor gamma3;  // of interaction
  double drop_path_rate = 0.0;

  at::Tensor Forward(const at::Tensor& map, NormMode mode) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

CrossCovarianceBlock MakeCrossCovarianceBlock(const XcitBlockShape& shape, at::Generator& generator);

// Attention of the class token, the first one, to all tokens (arXiv 2103.17239), and its feed-forward layer.
struct ClassAttentionBlock {
  LayerNormLayer norm1;
  SelfAttention attention;
  LayerNormLayer norm2;
  FeedForward feed_forward;
  at::Tensor gamma1;  // [C]
  at::Tensor gamma2;
  bool tokens_norm = true;

  at::Tensor Forward(const at::Tensor& tokens, bool training) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

ClassAttentionBlock MakeClassAttentionBlock(const XcitBlockShape& shape, at::Generator& generator);

// Images to a map of patches, with positions: 3x3 convolutions with stride 2, batch norm, and GELU between them; then
// sines and cosines of the places, by a 1x1 convolution, are added.
struct ConvEmbedding {
  std::vector<ConvNorm> layers;
  ConvLayer position_projection;
  double dropout_rate = 0.0;

  at::Tensor Forward(const at::Tensor& images, NormMode mode) const;
  void List(ModelTensors* tensors) const;
};

// patch_size: 8 or 16; width: a multiple of half of that.
ConvEmbedding MakeConvEmbedding(int64_t channels, int64_t patch_size, int64_t width, double dropout_rate,
                                at::Generator& generator);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_XCIT_BLOCKS_H_
