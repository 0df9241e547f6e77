// SPDX-License-Identifier: Apache-2.0
//
// Multi-head self-attention (arXiv 1706.03762), under VISSL's names: "qkv", "proj".
#ifndef SSL_MODELS_SELF_ATTENTION_H_
#define SSL_MODELS_SELF_ATTENTION_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "ssl/models/layers.h"
#include "ssl/models/model_tensor.h"

namespace ssl {

struct AttentionShape {
  int64_t width = 0;  // of tokens; a multiple of num_heads
  int64_t num_heads = 1;
  bool qkv_bias = false;
  double scale = 0.0;           // of the products of queries and keys; 0: 1 / sqrt(width / num_heads)
  double dropout_rate = 0.0;    // of the output
  double attention_rate = 0.0;  // dropout of the attention weights
};

// Queries, keys and values of tokens, each [B, heads, N, width / heads].
struct QueriesKeysValues {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

struct SelfAttention {
  LinearLayer qkv;  // to queries, keys, values, each by heads
  LinearLayer proj;
  AttentionShape shape;

  // tokens: [B, N, width]; each output is a mean of all tokens' values.
  at::Tensor Forward(const at::Tensor& tokens, bool training) const;
  QueriesKeysValues Split(const at::Tensor& tokens) const;
  // What `queries` [B, heads, M, width / heads] find, by `proj`, as tokens [B, M, width].
  at::Tensor Attend(const QueriesKeysValues& inputs, bool training) const;
  void List(const std::string& prefix, ModelTensors* tensors) const;
};

SelfAttention MakeSelfAttention(const AttentionShape& shape, at::Generator& generator);

}  // namespace ssl

#endif  // SSL_MODELS_SELF_ATTENTION_H_
