// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/max_pool.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/sin.h>
#include <ATen/record_function.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

at::Tensor Map(at::IntArrayRef shape, double phase, at::ScalarType type) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kDouble) * 0.73 + phase)
      .reshape(shape)
      .to(type)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor Reference(const at::Tensor& map) { return at::max_pool2d(map, {3, 3}, {2, 2}, {1, 1}); }

struct Results {
  at::Tensor output;
  at::Tensor gradient;
};

template <typename Pool>
Results RunPasses(const Pool& pool, const at::Tensor& map) {
  const at::Tensor input = map.detach().clone().requires_grad_();
  const at::Tensor output = pool(input);
  output.backward(Map(output.sizes(), 1.0, output.scalar_type()));
  return {output.detach(), input.grad()};
}

// Odd and even sides, sides of one pixel, and channels that no vector register divides.
const std::vector<std::vector<int64_t>>& Shapes() {
  static const auto* const shapes = new std::vector<std::vector<int64_t>>{
      {2, 32, 28, 28}, {3, 5, 7, 8}, {1, 16, 8, 7}, {2, 33, 1, 1}, {2, 3, 1, 6}, {1, 4, 5, 1}, {40, 64, 16, 16}};
  return *shapes;
}

TEST(MaxPool, FloatMaps_ValuesAndGradientsAreLibTorchsBitForBit) {
  for (const std::vector<int64_t>& shape : Shapes()) {
    const at::Tensor map = Map(shape, 0.0, at::kFloat);
    const Results got = RunPasses(MaxPool, map);
    const Results expected = RunPasses(Reference, map);
    EXPECT_TRUE(at::equal(got.output, expected.output)) << map.sizes();
    EXPECT_TRUE(at::equal(got.gradient, expected.gradient)) << map.sizes();
    EXPECT_TRUE(got.output.is_contiguous(at::MemoryFormat::ChannelsLast)) << map.sizes();
  }
}

// What ReLU leaves: windows of zeros, whose first one is the maximum.
TEST(MaxPool, EqualValues_GiveTheirGradientToTheFirst) {
  for (const std::vector<int64_t>& shape : Shapes()) {
    const at::Tensor map = Map(shape, 0.0, at::kFloat).relu();
    EXPECT_TRUE(at::equal(RunPasses(MaxPool, map).gradient, RunPasses(Reference, map).gradient)) << map.sizes();
  }
}

// Gradients are added up in float32 and rounded once.
TEST(MaxPool, Bfloat16Maps_ValuesAreLibTorchsAndGradientsThoseInDoubleRounded) {
  for (const std::vector<int64_t>& shape : Shapes()) {
    const at::Tensor map = Map(shape, 0.0, at::kBFloat16);
    const Results got = RunPasses(MaxPool, map);
    EXPECT_TRUE(at::equal(got.output, Reference(map))) << map.sizes();
    const at::Tensor input = map.to(at::kDouble).requires_grad_();
    const at::Tensor output = Reference(input);
    output.backward(Map(output.sizes(), 1.0, at::kBFloat16).to(at::kDouble));
    const at::Tensor exact = input.grad();
    const at::Tensor error = (got.gradient.to(at::kDouble) - exact).abs();
    EXPECT_LE((error - exact.abs() * std::pow(2.0, -8)).max().item<double>(), 1e-6) << map.sizes();
    EXPECT_EQ(got.gradient.scalar_type(), at::kBFloat16);
  }
}

TEST(MaxPool, NotANumber_StaysOne) {
  const at::Tensor map = Map({1, 3, 6, 6}, 0.0, at::kFloat);
  map.select(2, 3).select(2, 2).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::equal(at::isnan(MaxPool(map)), at::isnan(Reference(map))));
  EXPECT_TRUE(at::isnan(MaxPool(map)).any().item<bool>());
}

TEST(MaxPool, LowestValues_AreKept) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const at::Tensor map = at::full({1, 2, 4, 4}, lowest).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(at::equal(MaxPool(map), Reference(map)));
}

TEST(MaxPool, AnyNumberOfThreads_GivesTheSame) {
  const at::Tensor map = Map({40, 64, 16, 16}, 0.0, at::kFloat);
  const int threads = at::get_num_threads();
  const Results many = RunPasses(MaxPool, map);
  at::set_num_threads(1);
  const Results one = RunPasses(MaxPool, map);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(many.output, one.output));
  EXPECT_TRUE(at::equal(many.gradient, one.gradient));
}

bool seen_own = false;

std::unique_ptr<at::ObserverContext> SeeOwn(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "ssl::max_pool") seen_own = true;
  return nullptr;
}

TEST(MaxPool, MapsWithoutKernels_AreLibTorchs) {
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&SeeOwn));
  for (const at::Tensor& map : {Map({2, 3, 6, 6}, 0.0, at::kDouble), Map({2, 3, 6, 6}, 0.0, at::kFloat).contiguous(),
                                Map({2, 3, 6, 6}, 0.0, at::kFloat).narrow(0, 0, 0)}) {
    EXPECT_TRUE(at::equal(MaxPool(map), Reference(map)));
  }
  EXPECT_FALSE(seen_own);
  MaxPool(Map({2, 3, 6, 6}, 0.0, at::kFloat));
  EXPECT_TRUE(seen_own);
  at::removeCallback(handle);
}

}  // namespace
}  // namespace ssl
