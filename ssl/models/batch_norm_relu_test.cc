// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/batch_norm_relu.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "gtest/gtest.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

at::Tensor Map(at::IntArrayRef shape, double phase, at::ScalarType dtype = at::kFloat) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kDouble) * 0.73 + phase)
      .reshape(shape)
      .to(dtype)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

// A layer whose parameters and statistics are not the initial ones; double when asked for.
BatchNormLayer MakeLayer(int64_t channels, bool as_double = false) {
  const at::NoGradGuard no_grad;
  BatchNormLayer layer = MakeBatchNorm(channels, 1e-5, 0.3);
  layer.weight.copy_(at::sin(at::arange(channels, at::kFloat)) + 0.4);  // some negative
  layer.bias.copy_(at::sin(at::arange(channels, at::kFloat) + 2.0));
  layer.running_mean.fill_(0.5);
  layer.running_var.fill_(2.0);
  if (!as_double) return layer;
  for (at::Tensor* tensor : {&layer.weight, &layer.bias, &layer.running_mean, &layer.running_var}) {
    *tensor = tensor->detach().to(at::kDouble);
  }
  layer.weight.requires_grad_();
  layer.bias.requires_grad_();
  return layer;
}

struct Pass {
  at::Tensor input;
  at::Tensor residual;
  at::Tensor output;
};

// The operators one by one, in float64.
Pass RunReference(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual,
                  const at::Tensor& output_gradient) {
  Pass run;
  run.input = input.detach().to(at::kDouble).requires_grad_();
  if (residual.defined()) run.residual = residual.detach().to(at::kDouble).requires_grad_();
  at::Tensor map = layer.Forward(run.input, NormMode::kTraining);
  if (residual.defined()) map = map + run.residual;
  run.output = map.relu();
  run.output.backward(output_gradient.to(at::kDouble));
  return run;
}

Pass RunFused(const BatchNormLayer& layer, const at::Tensor& input, const at::Tensor& residual,
              const at::Tensor& output_gradient) {
  Pass run;
  run.input = input.detach().clone().requires_grad_();
  if (residual.defined()) run.residual = residual.detach().clone().requires_grad_();
  EXPECT_TRUE(CanFuseBatchNormRelu(layer, run.input, run.residual));
  run.output = BatchNormRelu(layer, run.input, run.residual, NormMode::kTraining);
  run.output.backward(output_gradient);
  return run;
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_TRUE(actual.defined());
  EXPECT_LE((actual.detach().to(at::kDouble) - expected.detach()).abs().max().item<double>(), tolerance);
}

TEST(BatchNormRelu, AllShapes_AgreeWithTheSeparateOperators) {
  // The last ones have several blocks, float sums and tasks.
  const std::vector<std::vector<int64_t>> shapes = {{2, 3, 1, 1},   {1, 1, 5, 2},    {4, 17, 3, 3},
                                                    {2, 64, 9, 11}, {3, 2500, 2, 2}, {9, 40, 21, 20}};
  for (const std::vector<int64_t>& shape : shapes) {
    for (const bool with_residual : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shape[1] << " channels, residual " << with_residual);
      const at::Tensor residual = with_residual ? Map(shape, 4.0) : at::Tensor();
      const at::Tensor gradient = Map(shape, 7.0);
      const BatchNormLayer reference_layer = MakeLayer(shape[1], /*as_double=*/true);
      const BatchNormLayer layer = MakeLayer(shape[1]);
      const Pass expected = RunReference(reference_layer, Map(shape, 1.0), residual, gradient);
      const Pass actual = RunFused(layer, Map(shape, 1.0), residual, gradient);
      ExpectClose(actual.output, expected.output, 1e-5);
      ExpectClose(actual.input.grad(), expected.input.grad(), 2e-5);
      if (with_residual) ExpectClose(actual.residual.grad(), expected.residual.grad(), 1e-6);
      ExpectClose(layer.weight.grad(), reference_layer.weight.grad(), 2e-4);
      ExpectClose(layer.bias.grad(), reference_layer.bias.grad(), 2e-4);
      ExpectClose(layer.running_mean, reference_layer.running_mean, 1e-6);
      ExpectClose(layer.running_var, reference_layer.running_var, 1e-6);
      EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 1);
      EXPECT_TRUE(actual.output.is_contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

TEST(BatchNormRelu, Bfloat16_RoundsOnlyInputAndOutput) {
  const std::vector<int64_t> shape = {6, 24, 7, 5};
  const at::Tensor input = Map(shape, 1.0, at::kBFloat16);
  const at::Tensor residual = Map(shape, 4.0, at::kBFloat16);
  const at::Tensor gradient = Map(shape, 7.0, at::kBFloat16);
  const BatchNormLayer reference_layer = MakeLayer(24, /*as_double=*/true);
  const BatchNormLayer layer = MakeLayer(24);
  const Pass expected = RunReference(reference_layer, input, residual, gradient);
  const Pass actual = RunFused(layer, input, residual, gradient);
  EXPECT_EQ(actual.output.scalar_type(), at::kBFloat16);
  EXPECT_EQ(actual.input.grad().scalar_type(), at::kBFloat16);
  ExpectClose(actual.output, expected.output, 0.02);
  ExpectClose(actual.input.grad(), expected.input.grad(), 0.03);
  ExpectClose(layer.running_mean, reference_layer.running_mean, 1e-5);
  ExpectClose(layer.bias.grad(), reference_layer.bias.grad(), 1e-3);
}

TEST(BatchNormRelu, LargeMean_KeepsTheVariance) {
  const at::Tensor input = Map({8, 4, 6, 6}, 1.0) + 1000.0;
  const BatchNormLayer layer = MakeLayer(4);
  const BatchNormLayer reference_layer = MakeLayer(4, /*as_double=*/true);
  const at::Tensor gradient = Map({8, 4, 6, 6}, 2.0);
  const Pass expected = RunReference(reference_layer, input, at::Tensor(), gradient);
  const Pass actual = RunFused(layer, input, at::Tensor(), gradient);
  ExpectClose(actual.output, expected.output, 2e-3);
  ExpectClose(layer.running_var, reference_layer.running_var, 1e-4);
}

TEST(BatchNormRelu, NumberOfThreads_DoesNotChangeABit) {
  const std::vector<int64_t> shape = {64, 32, 20, 20};
  const at::Tensor gradient = Map(shape, 7.0);
  std::vector<Pass> runs;
  std::vector<at::Tensor> weight_gradients;
  const int threads = at::get_num_threads();
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    const BatchNormLayer layer = MakeLayer(32);
    runs.push_back(RunFused(layer, Map(shape, 1.0), Map(shape, 4.0), gradient));
    weight_gradients.push_back(layer.weight.grad());
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(runs[0].output, runs[1].output));
  EXPECT_TRUE(at::equal(runs[0].input.grad(), runs[1].input.grad()));
  EXPECT_TRUE(at::equal(weight_gradients[0], weight_gradients[1]));
}

TEST(BatchNormRelu, GradientInAnotherLayout_IsAccepted) {
  const std::vector<int64_t> shape = {3, 5, 4, 4};
  const at::Tensor gradient = Map(shape, 7.0);
  const Pass rows = RunFused(MakeLayer(5), Map(shape, 1.0), at::Tensor(), gradient);
  const Pass planes = RunFused(MakeLayer(5), Map(shape, 1.0), at::Tensor(), gradient.contiguous());
  EXPECT_TRUE(at::equal(rows.input.grad(), planes.input.grad()));
}

TEST(CanFuseBatchNormRelu, OtherTensors_AreLeftToTheOperators) {
  const BatchNormLayer layer = MakeLayer(5);
  const at::Tensor map = Map({3, 5, 4, 4}, 0.0);
  EXPECT_TRUE(CanFuseBatchNormRelu(layer, map, at::Tensor()));
  EXPECT_TRUE(CanFuseBatchNormRelu(layer, map, map));
  EXPECT_FALSE(CanFuseBatchNormRelu(layer, map.contiguous(), at::Tensor())) << "planes";
  EXPECT_FALSE(CanFuseBatchNormRelu(layer, map.to(at::kDouble), at::Tensor()));
  EXPECT_FALSE(CanFuseBatchNormRelu(layer, at::zeros({3, 5}), at::Tensor()));
  EXPECT_FALSE(CanFuseBatchNormRelu(layer, map, map.to(at::kBFloat16)));
  EXPECT_FALSE(CanFuseBatchNormRelu(layer, map, Map({3, 5, 4, 2}, 0.0)));
  EXPECT_FALSE(CanFuseBatchNormRelu(MakeLayer(5, /*as_double=*/true), map, at::Tensor()));
}

}  // namespace
}  // namespace ssl
