// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the GPU against the CPU's, on the same inputs.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/batch_norm_relu.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

// Of few values, which every type has exactly: none comes so near to ReLU's corner that rounding decides.
at::Tensor Map(at::IntArrayRef shape, double phase, at::ScalarType type) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kDouble) * 0.73 + phase)
      .mul(8.0)
      .round()
      .div(8.0)
      .reshape(shape)
      .to(type)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

BatchNormLayer MakeLayer(int64_t channels, const at::Device& device) {
  const at::NoGradGuard no_grad;
  BatchNormLayer layer = MakeBatchNorm(channels, 1e-5, 0.3);
  layer.weight.copy_(at::sin(at::arange(channels, at::kFloat)) + 0.4);  // some negative
  layer.bias.copy_(at::sin(at::arange(channels, at::kFloat) + 2.0));
  layer.running_mean.fill_(0.5);
  layer.running_var.fill_(2.0);
  for (at::Tensor* tensor :
       {&layer.weight, &layer.bias, &layer.running_mean, &layer.running_var, &layer.num_batches_tracked}) {
    *tensor = tensor->detach().to(device);
  }
  layer.weight.requires_grad_();
  layer.bias.requires_grad_();
  return layer;
}

// What a forward and a backward pass leave, on the CPU and of double precision.
std::vector<at::Tensor> BothPasses(at::IntArrayRef shape, bool has_residual, at::ScalarType type, at::ScalarType on_cpu,
                                   const at::Device& device, NormMode mode) {
  const BatchNormLayer layer = MakeLayer(shape[1], device);
  // The same values for both: those of `type`.
  const auto leaf = [&](double phase) {
    return (Map(shape, phase, type) + 3.0).to(device, device.is_cpu() ? on_cpu : type).detach().requires_grad_();
  };
  const at::Tensor input = leaf(1.0);
  const at::Tensor residual = has_residual ? leaf(4.0).detach().sub_(3.0).requires_grad_() : at::Tensor();
  EXPECT_TRUE(CanFuseBatchNormRelu(layer, input, residual));
  const at::Tensor output = BatchNormRelu(layer, input, residual, mode);
  output.backward(Map(shape, 7.0, type).to(output.options()));
  std::vector<at::Tensor> results = {output,
                                     input.grad(),
                                     layer.weight.grad(),
                                     layer.bias.grad(),
                                     layer.running_mean,
                                     layer.running_var,
                                     layer.num_batches_tracked};
  if (has_residual) results.push_back(residual.grad());
  for (at::Tensor& result : results) result = result.detach().cpu().to(at::kDouble);
  return results;
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// A map of one block, of several, with idle threads, and with more rows than all blocks take at once.
const std::vector<std::vector<int64_t>> kShapes = {{2, 8, 1, 1},      {4, 24, 3, 3},   {2, 64, 9, 11},
                                                   {3, 2048, 2, 2},   {5, 520, 4, 3},  {64, 64, 56, 56},
                                                   {16, 256, 56, 56}, {7, 4096, 1, 3}, {1, 8, 300, 300}};

TEST(BatchNormReluGpu, Float_AgreesWithTheCpu) {
  for (const std::vector<int64_t>& shape : kShapes) {
    for (const bool has_residual : {false, true}) {
      SCOPED_TRACE(::testing::Message() << at::IntArrayRef(shape) << ", residual " << has_residual);
      const auto run = [&](const at::Device& device) {
        return BothPasses(shape, has_residual, at::kFloat, at::kFloat, device, NormMode::kTraining);
      };
      const std::vector<at::Tensor> expected = run(at::kCPU);
      const std::vector<at::Tensor> actual = run(at::kCUDA);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const double scale = 1.0 + expected[i].abs().max().item<double>();
        EXPECT_LE(LargestDifference(actual[i], expected[i]), 1e-5 * scale) << "result " << i;
      }
    }
  }
}

// Half a unit in the last place of the results; the sums that parameters' gradients are have rounded inputs alone.
TEST(BatchNormReluGpu, HalfPrecision_AgreesWithFloatOnTheSameInputs) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const double unit = type == at::kHalf ? 0x1p-11 : 0x1p-8;
    for (const std::vector<int64_t>& shape : kShapes) {
      for (const bool has_residual : {false, true}) {
        SCOPED_TRACE(::testing::Message() << at::IntArrayRef(shape) << ", residual " << has_residual);
        const auto run = [&](const at::Device& device) {
          return BothPasses(shape, has_residual, type, at::kFloat, device, NormMode::kTraining);
        };
        const std::vector<at::Tensor> expected = run(at::kCPU);
        const std::vector<at::Tensor> actual = run(at::kCUDA);
        for (size_t i = 0; i < expected.size(); ++i) {
          const double scale = 1.0 + expected[i].abs().max().item<double>();
          EXPECT_LE(LargestDifference(actual[i], expected[i]), unit * scale) << "result " << i;
        }
      }
    }
  }
}

TEST(BatchNormReluGpu, Recompute_LeavesRunningStatistics) {
  const auto run = [&](const at::Device& device) {
    return BothPasses({4, 64, 7, 7}, true, at::kFloat, at::kFloat, device, NormMode::kRecompute);
  };
  const std::vector<at::Tensor> expected = run(at::kCPU);
  const std::vector<at::Tensor> actual = run(at::kCUDA);
  for (const size_t i : {4, 5, 6}) EXPECT_TRUE(at::equal(actual[i], expected[i])) << "result " << i;
  EXPECT_LE(LargestDifference(actual[0], expected[0]), 1e-5);
}

TEST(BatchNormReluGpu, SameInputs_GiveTheSameBits) {
  const auto run = [&] {
    return BothPasses({16, 256, 28, 28}, true, at::kBFloat16, at::kFloat, at::kCUDA, NormMode::kTraining);
  };
  const std::vector<at::Tensor> once = run();
  const std::vector<at::Tensor> again = run();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(at::equal(once[i], again[i])) << "result " << i;
}

TEST(BatchNormReluGpu, OtherMaps_AreLeftToTheOperators) {
  const auto takes = [](const at::Tensor& map) {
    return CanFuseBatchNormRelu(MakeLayer(map.size(1), at::kCUDA), map, at::Tensor());
  };
  const at::Tensor map = Map({2, 64, 4, 4}, 0.0, at::kBFloat16).to(at::kCUDA);
  EXPECT_TRUE(takes(map));
  EXPECT_FALSE(takes(map.contiguous()));
  EXPECT_FALSE(takes(map.to(at::kDouble)));
  EXPECT_FALSE(takes(Map({2, 12, 4, 4}, 0.0, at::kBFloat16).to(at::kCUDA)));  // 24 bytes
  EXPECT_TRUE(takes(Map({2, 12, 4, 4}, 0.0, at::kFloat).to(at::kCUDA)));
}

}  // namespace
}  // namespace ssl
