// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/conv_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>

#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

at::Tensor Wave(at::IntArrayRef shape, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.37 + phase)
      .view(shape)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

ConvNorm Make(NormLayer norm) {
  at::Generator generator = MakeGenerator(3);
  return {MakeConv({4, 8, 3, 2, 2}, ConvInit::kKaimingUniform, generator), std::move(norm)};
}

// Of [N, C, H, W], over each sample's groups of channels, from the definition.
at::Tensor NaiveGroupNorm(const at::Tensor& map, int64_t groups) {
  const at::Tensor rows = map.contiguous().view({map.size(0), groups, -1});
  const at::Tensor centred = rows - rows.mean({2}, /*keepdim=*/true);
  return (centred / at::sqrt(centred.pow(2).mean({2}, /*keepdim=*/true) + 1e-5)).view(map.sizes());
}

TEST(ConvNorm, BatchNorm_IsTheComposition) {
  const at::Tensor input = Wave({3, 4, 9, 7}, 0.0);
  const at::Tensor shortcut = Wave({3, 8, 5, 4}, 1.0);
  const BatchNormLayer batch_norm = MakeBatchNorm(8);
  const ConvNorm layer = Make(batch_norm);
  const at::Tensor map = at::conv2d(input, layer.conv.weight, {}, {2, 2}, {1, 1}, {1, 1}, 2);
  for (const NormMode mode : {NormMode::kTraining, NormMode::kRecompute, NormMode::kEvaluation}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const at::Tensor before = batch_norm.running_var.clone();
    const at::Tensor mean = batch_norm.running_mean.clone();
    const at::Tensor variance = before.clone();
    const at::Tensor expected = at::batch_norm(map, batch_norm.weight, batch_norm.bias, mean, variance,
                                               mode != NormMode::kEvaluation, 0.1, 1e-5, /*cudnn_enabled=*/true);
    EXPECT_TRUE(at::allclose(layer.ForwardRelu(input, shortcut, mode), at::relu(expected + shortcut), 1e-4, 1e-5));
    const at::Tensor& moved = mode == NormMode::kTraining ? variance : before;
    EXPECT_TRUE(at::allclose(batch_norm.running_var, moved, 1e-5, 1e-6));
  }
  EXPECT_EQ(batch_norm.num_batches_tracked.item<int64_t>(), 1);
}

TEST(ConvNorm, GroupNorm_IsTheDefinition) {
  const at::Tensor input = Wave({3, 4, 9, 7}, 0.0);
  const at::Tensor shortcut = Wave({3, 8, 5, 4}, 1.0);
  for (const int64_t groups : {1, 4}) {
    const ConvNorm layer = Make(MakeGroupNorm(8, groups));
    const at::Tensor map = at::conv2d(input, layer.conv.weight, {}, {2, 2}, {1, 1}, {1, 1}, 2);
    const at::Tensor expected = NaiveGroupNorm(map, groups);
    for (const NormMode mode : {NormMode::kTraining, NormMode::kRecompute, NormMode::kEvaluation}) {
      EXPECT_TRUE(at::allclose(layer.Forward(input, mode), expected, 1e-4, 1e-5)) << groups;
      EXPECT_TRUE(at::allclose(layer.ForwardRelu(input, shortcut, mode), at::relu(expected + shortcut), 1e-4, 1e-5))
          << groups;
    }
  }
}

TEST(ConvNorm, GroupNormInPlaceRelu_KeepsTheGradient) {
  const at::Tensor input = Wave({2, 4, 6, 6}, 0.0);
  const ConvNorm layer = Make(MakeGroupNorm(8, 2));
  const at::Tensor weights = Wave({2, 8, 3, 3}, 0.5);
  (layer.ForwardRelu(input, at::Tensor(), NormMode::kTraining) * weights).sum().backward();
  const at::Tensor gradient = layer.conv.weight.grad().clone();
  layer.conv.weight.mutable_grad() = at::Tensor();
  const at::Tensor map = at::conv2d(input, layer.conv.weight, {}, {2, 2}, {1, 1}, {1, 1}, 2);
  (at::relu(NaiveGroupNorm(map, 2)) * weights).sum().backward();
  EXPECT_TRUE(at::allclose(layer.conv.weight.grad(), gradient, 1e-3, 1e-5));
}

TEST(ConvNorm, ListAndZero_ReachEitherNorm) {
  for (const NormLayer& norm : {NormLayer(MakeBatchNorm(8)), NormLayer(MakeGroupNorm(8, 2))}) {
    ModelTensors tensors;
    ListNorm(norm, "bn1.", &tensors);
    EXPECT_EQ(tensors.size(), std::holds_alternative<BatchNormLayer>(norm) ? 5u : 2u);
    EXPECT_EQ(tensors[0].name, "bn1.weight");
    EXPECT_EQ(tensors[1].role, TensorRole::kNorm);
    ZeroNormWeight(norm);
    EXPECT_EQ(tensors[0].value.abs().sum().item<float>(), 0.0f);
    EXPECT_TRUE(tensors[0].value.requires_grad());
  }
}

}  // namespace
}  // namespace ssl
