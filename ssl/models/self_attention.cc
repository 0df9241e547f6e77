// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/self_attention.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include "ssl/models/transformer_layers.h"

namespace ssl {

QueriesKeysValues SelfAttention::Split(const at::Tensor& tokens) const {
  const at::Tensor joined = ForwardTokens(qkv, tokens)
                                .view({tokens.size(0), tokens.size(1), 3, shape.num_heads, -1})
                                .permute({2, 0, 3, 1, 4});
  return {joined.select(0, 0), joined.select(0, 1), joined.select(0, 2)};
}

at::Tensor SelfAttention::Attend(const QueriesKeysValues& inputs, bool training) const {
  const at::Tensor found = at::scaled_dot_product_attention(inputs.queries, inputs.keys, inputs.values,
                                                            /*attn_mask=*/{}, training ? shape.attention_rate : 0.0,
                                                            /*is_causal=*/false, shape.scale);
  return at::dropout(ForwardTokens(proj, found.transpose(1, 2).flatten(2)), shape.dropout_rate, training);
}

at::Tensor SelfAttention::Forward(const at::Tensor& tokens, bool training) const {
  return Attend(Split(tokens), training);
}

void SelfAttention::List(const std::string& prefix, ModelTensors* tensors) const {
  qkv.List(prefix + "qkv.", tensors);
  proj.List(prefix + "proj.", tensors);
}

SelfAttention MakeSelfAttention(const AttentionShape& shape, at::Generator& generator) {
  SelfAttention attention;
  attention.qkv = MakeNormalLinear(shape.width, 3 * shape.width, shape.qkv_bias, generator);
  attention.proj = MakeNormalLinear(shape.width, shape.width, /*use_bias=*/true, generator);
  attention.shape = shape;
  if (shape.scale == 0.0) attention.shape.scale = 1.0 / std::sqrt(static_cast<double>(shape.width / shape.num_heads));
  return attention;
}

}  // namespace ssl
