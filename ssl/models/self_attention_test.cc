// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/self_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"

namespace ssl {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kHeads = 2;

at::Tensor Normal(at::IntArrayRef shape, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  return at::randn(shape, generator, at::kFloat).to(at::kDouble);
}

SelfAttention Make(double scale, bool qkv_bias = true) {
  at::Generator generator = MakeGenerator(1);
  SelfAttention attention = MakeSelfAttention({kWidth, kHeads, qkv_bias, scale, 0.0, 0.0}, generator);
  attention.qkv.weight = Normal({3 * kWidth, kWidth}, 2).requires_grad_();
  if (qkv_bias) attention.qkv.bias = Normal({3 * kWidth}, 3).requires_grad_();
  attention.proj.weight = Normal({kWidth, kWidth}, 4).requires_grad_();
  attention.proj.bias = Normal({kWidth}, 5).requires_grad_();
  return attention;
}

// Entry `row` of layer(token).
at::Tensor Entry(const LinearLayer& layer, const at::Tensor& token, int64_t row) {
  const at::Tensor product = (layer.weight[row] * token).sum();
  return layer.bias.defined() ? product + layer.bias[row] : product;
}

// What head `head` gives token `query` of one image, entry by entry.
std::vector<at::Tensor> HeadOutput(const SelfAttention& attention, const at::Tensor& tokens, int64_t head,
                                   int64_t query, double scale) {
  constexpr int64_t kHeadWidth = kWidth / kHeads;
  const int64_t first = head * kHeadWidth;
  std::vector<at::Tensor> weights;
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (int64_t key = 0; key < tokens.size(0); ++key) {
    at::Tensor product = at::zeros({}, at::kDouble);
    for (int64_t i = 0; i < kHeadWidth; ++i) {
      product = product +
                Entry(attention.qkv, tokens[query], first + i) * Entry(attention.qkv, tokens[key], kWidth + first + i);
    }
    weights.push_back((product * scale).exp());
    sum = sum + weights.back();
  }
  std::vector<at::Tensor> output;
  for (int64_t i = 0; i < kHeadWidth; ++i) {
    at::Tensor value = at::zeros({}, at::kDouble);
    for (int64_t key = 0; key < tokens.size(0); ++key) {
      value =
          value + weights[static_cast<size_t>(key)] / sum * Entry(attention.qkv, tokens[key], 2 * kWidth + first + i);
    }
    output.push_back(value);
  }
  return output;
}

// The definition, number by number.
at::Tensor Naive(const SelfAttention& attention, const at::Tensor& tokens, double scale) {
  at::Tensor output = at::zeros(tokens.sizes(), at::kDouble);
  for (int64_t image = 0; image < tokens.size(0); ++image) {
    for (int64_t query = 0; query < tokens.size(1); ++query) {
      at::Tensor joined = at::zeros({kWidth}, at::kDouble);
      for (int64_t head = 0; head < kHeads; ++head) {
        const std::vector<at::Tensor> of_head = HeadOutput(attention, tokens[image], head, query, scale);
        for (size_t i = 0; i < of_head.size(); ++i) {
          joined[head * (kWidth / kHeads) + static_cast<int64_t>(i)] = of_head[i];
        }
      }
      for (int64_t row = 0; row < kWidth; ++row) output[image][query][row] = Entry(attention.proj, joined, row);
    }
  }
  return output;
}

std::vector<at::Tensor> Gradients(const SelfAttention& attention, const at::Tensor& tokens, const at::Tensor& output) {
  (output * Normal(output.sizes(), 9)).sum().backward();
  std::vector<at::Tensor> gradients;
  for (at::Tensor leaf :
       {attention.qkv.weight, attention.qkv.bias, attention.proj.weight, attention.proj.bias, tokens}) {
    if (!leaf.defined()) continue;
    gradients.push_back(leaf.grad().clone());
    leaf.mutable_grad() = at::Tensor();
  }
  return gradients;
}

void Compare(const SelfAttention& attention, double scale) {
  const at::Tensor tokens = Normal({2, 3, kWidth}, 7).requires_grad_();
  const at::Tensor expected = Naive(attention, tokens, scale);
  const at::Tensor output = attention.Forward(tokens, /*training=*/true);
  EXPECT_TRUE(at::allclose(output, expected, 1e-11, 1e-11));
  const std::vector<at::Tensor> expected_gradients = Gradients(attention, tokens, expected);
  const std::vector<at::Tensor> gradients = Gradients(attention, tokens, output);
  ASSERT_EQ(gradients.size(), expected_gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(at::allclose(gradients[i], expected_gradients[i], 1e-10, 1e-10)) << i;
  }
}

TEST(SelfAttention, IsItsDefinition) { Compare(Make(/*scale=*/0.0), 1.0 / std::sqrt(4.0)); }

TEST(SelfAttention, TakesAScaleAndNoBias) { Compare(Make(/*scale=*/0.3, /*qkv_bias=*/false), 0.3); }

SelfAttention InFloat(const SelfAttention& attention) {
  SelfAttention copy = attention;
  for (at::Tensor* tensor : {&copy.qkv.weight, &copy.qkv.bias, &copy.proj.weight, &copy.proj.bias}) {
    *tensor = tensor->detach().to(at::kFloat);
  }
  return copy;
}

TEST(SelfAttention, RunsInShortFormats) {
  const SelfAttention attention = Make(/*scale=*/0.0);
  const at::Tensor tokens = Normal({4, 50, kWidth}, 7);
  const at::Tensor expected = attention.Forward(tokens, /*training=*/false);
  const SelfAttention in_float = InFloat(attention);
  const double size = expected.abs().max().item<double>();
  EXPECT_LE((in_float.Forward(tokens.to(at::kFloat), false) - expected).abs().max().item<double>(), 1e-5 * size);
  const AutocastScope autocast(Autocast::kBFloat16);
  const at::Tensor output = in_float.Forward(tokens.to(at::kFloat), /*training=*/true);
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  EXPECT_LE((output.to(at::kDouble) - expected).abs().max().item<double>(), 0.05 * size);
}

TEST(SelfAttention, DropsOnlyInTraining) {
  SelfAttention attention = Make(/*scale=*/0.0);
  const at::Tensor tokens = Normal({2, 3, kWidth}, 7);
  const at::Tensor expected = attention.Forward(tokens, /*training=*/true);
  attention.shape.attention_rate = 0.5;
  EXPECT_TRUE(at::allclose(attention.Forward(tokens, /*training=*/false), expected));
  EXPECT_FALSE(at::allclose(attention.Forward(tokens, /*training=*/true), expected));
  attention.shape.attention_rate = 0.0;
  attention.shape.dropout_rate = 0.5;
  EXPECT_TRUE(at::allclose(attention.Forward(tokens, /*training=*/false), expected));
  const at::Tensor dropped = attention.Forward(tokens, /*training=*/true);
  EXPECT_GT((dropped == 0).sum().item<int64_t>(), 0);
}

}  // namespace
}  // namespace ssl
