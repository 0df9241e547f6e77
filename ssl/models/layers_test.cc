// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/model_tensor.h"

namespace ssl {
namespace {

at::Tensor Wave(at::IntArrayRef shape, double phase) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat) * 0.37 + phase).reshape(shape);
}

std::vector<std::string> NamesOf(const ModelTensors& tensors) {
  std::vector<std::string> names;
  for (const ModelTensor& entry : tensors) names.push_back(entry.name);
  return names;
}

TEST(LayerInit, SameSeed_GivesTheSameWeights) {
  at::Generator first = MakeGenerator(3);
  at::Generator second = MakeGenerator(3);
  at::Generator other = MakeGenerator(4);
  const LinearLayer layer = MakeLinear(8, 4, true, first);
  EXPECT_TRUE(at::equal(layer.weight, MakeLinear(8, 4, true, second).weight));
  EXPECT_FALSE(at::equal(layer.weight, MakeLinear(8, 4, true, other).weight));
}

TEST(LayerInit, ProcessWideGenerator_IsNotTouched) {
  const at::Generator& process_wide = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = process_wide.get_state();
  at::Generator generator = MakeGenerator(0);
  MakeConv({16, 16, 3, 1, 1}, ConvInit::kKaimingFanOut, generator);
  MakeLinear(16, 16, true, generator);
  EXPECT_TRUE(at::equal(process_wide.get_state(), before));
}

TEST(LayerInit, Linear_IsUniformWithinTheBound) {
  at::Generator generator = MakeGenerator(0);
  const LinearLayer layer = MakeLinear(64, 256, true, generator);
  const double bound = 1.0 / 8.0;
  EXPECT_LE(layer.weight.abs().max().item<double>(), bound);
  EXPECT_NEAR(layer.weight.std().item<double>(), bound / std::sqrt(3.0), 0.002);
  EXPECT_LE(layer.bias.abs().max().item<double>(), bound);
  EXPECT_TRUE(layer.weight.requires_grad());
}

TEST(LayerInit, ConvFanOut_HasTorchvisionsDeviation) {
  at::Generator generator = MakeGenerator(0);
  const ConvLayer layer = MakeConv({16, 64, 3, 1, 1}, ConvInit::kKaimingFanOut, generator);
  EXPECT_NEAR(layer.weight.std().item<double>(), std::sqrt(2.0 / (64 * 9)), 0.002);
  EXPECT_TRUE(layer.weight.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(LayerInit, ConvKaimingUniform_StaysWithinTheBound) {
  at::Generator generator = MakeGenerator(0);
  const ConvLayer layer = MakeConv({16, 64, 3, 1, 2}, ConvInit::kKaimingUniform, generator);
  const double bound = 1.0 / std::sqrt(8.0 * 9.0);
  EXPECT_EQ(layer.weight.sizes(), at::IntArrayRef({64, 8, 3, 3}));
  EXPECT_LE(layer.weight.abs().max().item<double>(), bound);
  EXPECT_GT(layer.weight.abs().max().item<double>(), 0.99 * bound);
}

TEST(ConvLayer, EveryMapSize_AgreesWithConv2d) {
  for (const int64_t kernel : {1, 3}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t height : {1, 2, 3, 5}) {
        for (const int64_t width : {1, 2, 4}) {
          SCOPED_TRACE(::testing::Message() << kernel << " " << stride << " " << height << " " << width);
          at::Generator generator = MakeGenerator(7);
          const ConvLayer layer = MakeConv({4, 6, kernel, stride, 1}, ConvInit::kKaimingUniform, generator);
          const at::Tensor input = Wave({3, 4, height, width}, 0.2).contiguous(at::MemoryFormat::ChannelsLast);
          const at::Tensor given = input.clone().requires_grad_();
          const at::Tensor output = layer.Forward(given);
          const at::Tensor wave = Wave(output.sizes(), 1.0);
          (output * wave).sum().backward();

          const at::Tensor reference_input = input.contiguous().clone().requires_grad_();
          const at::Tensor reference_weight = layer.weight.detach().contiguous().clone().requires_grad_();
          const at::Tensor expected =
              at::conv2d(reference_input, reference_weight, {}, {stride, stride}, {kernel / 2, kernel / 2});
          (expected * wave).sum().backward();
          ASSERT_EQ(output.sizes(), expected.sizes());
          EXPECT_TRUE(at::allclose(output, expected, 1e-5, 1e-6));
          EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
          EXPECT_TRUE(at::allclose(given.grad(), reference_input.grad(), 1e-5, 1e-6));
          EXPECT_TRUE(at::allclose(layer.weight.grad(), reference_weight.grad(), 1e-5, 1e-5));
        }
      }
    }
  }
}

TEST(ConvLayer, Groups_AreKept) {
  at::Generator generator = MakeGenerator(7);
  const ConvLayer layer = MakeConv({4, 6, 3, 1, 2}, ConvInit::kKaimingUniform, generator);
  const at::Tensor input = Wave({2, 4, 2, 2}, 0.2).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor expected = at::conv2d(input, layer.weight, {}, {1, 1}, {1, 1}, {1, 1}, 2);
  EXPECT_TRUE(at::allclose(layer.Forward(input), expected, 1e-5, 1e-6));
}

TEST(ConvLayer, Bias_IsAddedOnMapsOfAnySize) {
  at::Generator generator = MakeGenerator(0);
  ConvLayer layer = MakeConv({4, 6, 3, 1, 1}, ConvInit::kKaimingUniform, generator);
  layer.bias = Wave({6}, 2.0);
  for (const int64_t size : {2, 5}) {
    const at::Tensor input = Wave({3, 4, size, size}, 0.0);
    const at::Tensor expected = at::conv2d(input, layer.weight, {}, {1, 1}, {1, 1}) + layer.bias.view({6, 1, 1});
    EXPECT_TRUE(at::allclose(layer.Forward(input), expected, 1e-4, 1e-5)) << size;
  }
  ModelTensors tensors;
  layer.List("conv.", &tensors);
  EXPECT_EQ(NamesOf(tensors), (std::vector<std::string>{"conv.weight", "conv.bias"}));
}

TEST(BatchNormLayer, Training_NormalizesByTheBatchAndTracksIt) {
  const BatchNormLayer layer = MakeBatchNorm(2, 1e-5, 0.25);
  const at::Tensor input = Wave({6, 2}, 0.0) * 3.0 + 5.0;
  const at::Tensor output = layer.Forward(input, NormMode::kTraining);
  EXPECT_TRUE(at::allclose(output.mean(0), at::zeros({2}), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(output.pow(2).mean(0), at::zeros({2}) + 1.0, 1e-3, 1e-3));
  EXPECT_TRUE(at::allclose(layer.running_mean, input.mean(0) * 0.25));
  EXPECT_TRUE(at::allclose(layer.running_var, input.var(0) * 0.25 + 0.75));
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 1);
}

TEST(BatchNormLayer, OneValueForEachChannel_CannotBeTrainedOn) {
  const BatchNormLayer layer = MakeBatchNorm(3);
  for (const at::Tensor& input : {Wave({1, 3}, 0.0), Wave({1, 3, 1, 1}, 0.0)}) {
    EXPECT_THROW(layer.Forward(input, NormMode::kTraining), c10::ValueError);
    EXPECT_THROW(layer.Forward(input, NormMode::kRecompute), c10::ValueError);
    EXPECT_NO_THROW(layer.Forward(input, NormMode::kEvaluation));
  }
  EXPECT_NO_THROW(layer.Forward(Wave({1, 3, 1, 2}, 0.0), NormMode::kTraining));
  EXPECT_NO_THROW(layer.Forward(Wave({2, 3}, 0.0), NormMode::kTraining));
}

TEST(BatchNormLayer, Evaluation_UsesAndKeepsRunningStatistics) {
  const BatchNormLayer layer = MakeBatchNorm(2);
  layer.running_mean.fill_(2.0);
  layer.running_var.fill_(4.0);
  const at::Tensor input = Wave({6, 2}, 0.0);
  EXPECT_TRUE(at::allclose(layer.Forward(input, NormMode::kEvaluation), (input - 2.0) / 2.0, 1e-4, 1e-4));
  EXPECT_EQ(layer.running_mean[0].item<double>(), 2.0);
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 0);
}

TEST(LayerNames, AreThoseOfPytorch) {
  at::Generator generator = MakeGenerator(0);
  ModelTensors tensors;
  MakeLinear(2, 2, true, generator).List("fc.", &tensors);
  MakeBatchNorm(2).List("bn.", &tensors);
  EXPECT_EQ(NamesOf(tensors),
            (std::vector<std::string>{"fc.weight", "fc.bias", "bn.weight", "bn.bias", "bn.running_mean",
                                      "bn.running_var", "bn.num_batches_tracked"}));
  EXPECT_EQ(tensors[0].role, TensorRole::kWeight);
  EXPECT_EQ(tensors[2].role, TensorRole::kNorm);
  EXPECT_EQ(tensors[4].role, TensorRole::kBuffer);
}

}  // namespace
}  // namespace ssl
