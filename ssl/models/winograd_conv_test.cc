// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/winograd_conv.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/algorithm_scope.h"
#include "ssl/core/autocast.h"
#include "ssl/models/layers.h"
#include "ssl/models/winograd_kernels.h"

namespace ssl {
namespace {

constexpr int64_t kSeed = 20261123;
// Transformations add and subtract before the products are rounded, which the definition does not.
constexpr double kLargestErrorRatio = 4.0;

struct Shape {
  int64_t OutHeight() const { return (height + stride - 1) / stride; }
  int64_t OutWidth() const { return (width + stride - 1) / stride; }

  int64_t batch, in, out, height, width;
  int64_t stride = 1;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << " maps of " << s.height << " x " << s.width << ", " << s.in << " to " << s.out
       << " channels, stride " << s.stride;
}

at::Tensor Random(at::IntArrayRef sizes, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  return at::empty(sizes, at::kFloat).normal_(0.0, 1.0, generator).contiguous(at::MemoryFormat::ChannelsLast);
}

struct Problem {
  explicit Problem(const Shape& s)
      : input(Random({s.batch, s.in, s.height, s.width}, kSeed)),
        weight(Random({s.out, s.in, 3, 3}, kSeed + 1)),
        gradient(Random({s.batch, s.out, s.OutHeight(), s.OutWidth()}, kSeed + 2)),
        stride(s.stride) {}

  at::Tensor input;
  at::Tensor weight;
  at::Tensor gradient;  // of the output
  int64_t stride;
};

// Output, gradient of the input, gradient of the weight.
using Results = std::array<at::Tensor, 3>;
constexpr std::array<const char*, 3> kResultNames = {"output", "gradient of the input", "gradient of the weight"};

at::Tensor ByLayer(const at::Tensor& input, const at::Tensor& weight, int64_t stride = 1) {
  return ConvLayer{weight, /*bias=*/{}, stride, /*padding=*/1, /*groups=*/1}.Forward(input);
}

at::Tensor Direct(const at::Tensor& input, const at::Tensor& weight, int64_t stride = 1) {
  return at::conv2d(input, weight, /*bias=*/{}, stride, /*padding=*/1);
}

template <typename Convolution>
Results RunPasses(const Convolution& convolution, const Problem& problem) {
  const at::Tensor input = problem.input.detach().requires_grad_();
  const at::Tensor weight = problem.weight.detach().requires_grad_();
  const at::Tensor output = convolution(input, weight, problem.stride);
  output.backward(problem.gradient);
  return {output.detach(), input.grad(), weight.grad()};
}

// The definition, in double: all [N, height, width, C] and [out, 3, 3, in].
struct Definition {
  Definition(const Shape& s, const Problem& problem)
      : shape(s), x(Values(problem.input)), w(Values(problem.weight)), dy(Values(problem.gradient)) {
    y.resize(dy.size());
    dx.resize(x.size());
    dw.resize(w.size());
    for (int64_t pixel = 0; pixel < s.batch * s.OutHeight() * s.OutWidth(); ++pixel) {
      for (int64_t tap = 0; tap < 9; ++tap) AddTap(pixel, tap);
    }
  }

  static std::vector<double> Values(const at::Tensor& tensor) {
    const at::Tensor values = tensor.permute({0, 2, 3, 1}).to(at::kDouble).contiguous();
    return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  }

  // pixel: of the output.
  void AddTap(int64_t pixel, int64_t tap) {
    const int64_t map = pixel / (shape.OutWidth() * shape.OutHeight());
    const int64_t row = pixel / shape.OutWidth() % shape.OutHeight() * shape.stride + tap / 3 - 1;
    const int64_t column = pixel % shape.OutWidth() * shape.stride + tap % 3 - 1;
    if (row < 0 || row >= shape.height || column < 0 || column >= shape.width) return;
    const int64_t from = ((map * shape.height + row) * shape.width + column) * shape.in;
    for (int64_t out = 0; out < shape.out; ++out) {
      const int64_t to = pixel * shape.out + out;
      const int64_t kernel = (out * 9 + tap) * shape.in;
      for (int64_t in = 0; in < shape.in; ++in) {
        y[to] += x[from + in] * w[kernel + in];
        dx[from + in] += dy[to] * w[kernel + in];
        dw[kernel + in] += dy[to] * x[from + in];
      }
    }
  }

  const Shape shape;
  const std::vector<double> x, w, dy;
  std::vector<double> y, dx, dw;
};

double LargestError(const at::Tensor& tensor, const std::vector<double>& exact) {
  const std::vector<double> values = Definition::Values(tensor);
  EXPECT_EQ(values.size(), exact.size());
  double largest = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double error = std::fabs(values[i] - exact[i]);
    largest = error <= largest ? largest : error;  // keeps NaN
  }
  return largest;
}

std::atomic<int> winograd_calls{0};

std::unique_ptr<at::ObserverContext> CountWinograd(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "ssl::winograd_convolution") ++winograd_calls;
  return nullptr;
}

int WinogradCallsOf(const ConvLayer& layer, const at::Tensor& input) {
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&CountWinograd));
  winograd_calls = 0;
  layer.Forward(input);
  at::removeCallback(handle);
  return winograd_calls;
}

// On a machine without AVX-512 nothing takes it.
const int kTaken = HasWinogradKernels() ? 1 : 0;

class WinogradShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(WinogradShapes, AllPasses_AreAsExactAsTheDefinitionInFloat) {
  const Problem problem(GetParam());
  const Results results = RunPasses(ByLayer, problem);
  const Results direct = RunPasses(Direct, problem);
  const Definition exact(GetParam(), problem);
  const std::array<const std::vector<double>*, 3> expected = {&exact.y, &exact.dx, &exact.dw};
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(results[i].sizes(), direct[i].sizes()) << kResultNames[i];
    EXPECT_TRUE(results[i].is_contiguous(at::MemoryFormat::ChannelsLast)) << kResultNames[i];
    const double allowed = kLargestErrorRatio * LargestError(direct[i], *expected[i]);
    EXPECT_LE(LargestError(results[i], *expected[i]), allowed) << kResultNames[i];
  }
}

TEST_P(WinogradShapes, OneThreadAndTwo_AgreeBitForBit) {
  const Problem problem(GetParam());
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Results one = RunPasses(ByLayer, problem);
  at::set_num_threads(2);
  const Results two = RunPasses(ByLayer, problem);
  at::set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], two[i])) << kResultNames[i];
}

// Even and odd sides, one map, two rows, more tiles than a group or a part has, more channels than a panel.
INSTANTIATE_TEST_SUITE_P(TilesOfTwo, WinogradShapes,
                         ::testing::Values(Shape{2, 32, 32, 14, 14}, Shape{16, 32, 64, 4, 4}, Shape{4, 64, 32, 7, 7},
                                           Shape{1, 32, 32, 16, 16}, Shape{1, 32, 32, 15, 17}, Shape{13, 32, 96, 5, 3},
                                           Shape{1, 32, 32, 2, 140}, Shape{3, 32, 32, 60, 2}, Shape{4, 32, 160, 8, 8},
                                           Shape{4, 160, 32, 8, 8}, Shape{17, 128, 64, 4, 4}));
INSTANTIATE_TEST_SUITE_P(TilesOfThree, WinogradShapes,
                         ::testing::Values(Shape{64, 64, 32, 3, 3}, Shape{65, 32, 96, 3, 3}, Shape{16, 32, 32, 6, 6},
                                           Shape{20, 32, 64, 5, 6}, Shape{33, 96, 32, 6, 3}, Shape{64, 512, 32, 3, 3},
                                           Shape{64, 32, 512, 3, 3}));
INSTANTIATE_TEST_SUITE_P(TilesOfFour, WinogradShapes,
                         ::testing::Values(Shape{64, 32, 32, 4, 4}, Shape{8, 64, 32, 12, 12}, Shape{8, 32, 64, 11, 10},
                                           Shape{5, 32, 32, 41, 40}, Shape{16, 32, 256, 8, 8}, Shape{1, 32, 32, 37, 33},
                                           Shape{16, 256, 32, 7, 8}, Shape{2, 32, 32, 100, 101}));
INSTANTIATE_TEST_SUITE_P(WholeMaps, WinogradShapes,
                         ::testing::Values(Shape{64, 32, 32, 2, 2}, Shape{77, 64, 96, 2, 2}, Shape{64, 512, 32, 2, 2},
                                           Shape{64, 32, 512, 2, 2}, Shape{1100, 32, 32, 2, 2}));

INSTANTIATE_TEST_SUITE_P(StridedTilesOfThree, WinogradShapes,
                         ::testing::Values(Shape{8, 32, 64, 24, 24, 2}, Shape{64, 64, 32, 6, 6, 2},
                                           Shape{70, 32, 96, 5, 6, 2}, Shape{33, 32, 32, 11, 12, 2},
                                           Shape{3, 32, 32, 41, 36, 2}, Shape{16, 256, 32, 12, 12, 2},
                                           Shape{16, 32, 256, 12, 12, 2}, Shape{16, 512, 32, 12, 11, 2},
                                           Shape{520, 32, 32, 12, 12, 2}));
INSTANTIATE_TEST_SUITE_P(StridedTilesOfTwo, WinogradShapes,
                         ::testing::Values(Shape{4, 32, 64, 16, 16, 2}, Shape{16, 64, 32, 8, 8, 2},
                                           Shape{16, 32, 32, 7, 8, 2}, Shape{5, 32, 32, 16, 15, 2},
                                           Shape{20, 160, 32, 7, 8, 2}));

TEST(WinogradConv, Layers_TakeItForWholeKernelsInFloat) {
  const at::Tensor input = Random({4, 64, 8, 8}, kSeed);
  at::Generator generator = MakeGenerator(kSeed);
  const auto layer = [&](const ConvShape& shape) { return MakeConv(shape, ConvInit::kKaimingUniform, generator); };
  const ConvLayer taken = layer({64, 64, 3, 1, 1});
  ConvLayer biased = taken;
  biased.bias = at::ones({64});
  EXPECT_EQ(WinogradCallsOf(taken, input), kTaken);
  EXPECT_EQ(WinogradCallsOf(taken, input.contiguous()), kTaken);
  EXPECT_EQ(WinogradCallsOf(biased, input), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 3, 2, 1}), input), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 3, 2, 1}), Random({16, 64, 8, 8}, kSeed)), kTaken);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 3, 2, 1}), Random({64, 64, 4, 4}, kSeed)), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 3, 3, 1}), Random({64, 64, 9, 9}, kSeed)), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 3, 1, 2}), input), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 5, 1, 1}), input), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 64, 1, 1, 1}), input), 0);
  EXPECT_EQ(WinogradCallsOf(layer({64, 48, 3, 1, 1}), input), 0);
  EXPECT_EQ(WinogradCallsOf(taken, input.narrow(0, 0, 1)), 0);
  EXPECT_EQ(WinogradCallsOf(taken, input.narrow(0, 0, 0)), 0);
  EXPECT_EQ(WinogradCallsOf(taken, Random({64, 64, 2, 2}, kSeed)), kTaken);
  // Fewer products by the definition: most taps meet padding.
  EXPECT_EQ(WinogradCallsOf(taken, Random({64, 64, 1, 4}, kSeed)), 0);
  EXPECT_EQ(WinogradCallsOf(taken, Random({64, 64, 1, 1}, kSeed)), 0);
}

TEST(WinogradConv, Autocast_LeavesItOut) {
  const Problem problem({4, 64, 64, 8, 8});
  const AutocastScope autocast(Autocast::kBFloat16);
  EXPECT_EQ(ByLayer(problem.input, problem.weight).scalar_type(), at::kBFloat16);
}

TEST(WinogradConv, IeeeConvolutions_LeaveItOut) {
  const at::Tensor input = Random({4, 64, 8, 8}, kSeed);
  at::Generator generator = MakeGenerator(kSeed);
  const ConvLayer layer = MakeConv({64, 64, 3, 1, 1}, ConvInit::kKaimingUniform, generator);
  {
    const IeeeConvolutionScope ieee;
    EXPECT_EQ(WinogradCallsOf(layer, input), 0);
    EXPECT_TRUE(at::equal(layer.Forward(input), at::conv2d(input, layer.weight, {}, {1, 1}, {1, 1})));
  }
  EXPECT_EQ(WinogradCallsOf(layer, input), kTaken);
}

TEST(WinogradConv, ContiguousMaps_GiveTheSameBits) {
  Problem problem({4, 64, 32, 9, 8});
  const Results expected = RunPasses(ByLayer, problem);
  problem.input = problem.input.contiguous();
  problem.weight = problem.weight.contiguous();
  problem.gradient = problem.gradient.contiguous();
  const Results results = RunPasses(ByLayer, problem);
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(results[i], expected[i])) << kResultNames[i];
}

TEST(WinogradConv, GradientThatIsOneNumber_IsRead) {
  Problem problem({4, 64, 32, 9, 8});
  problem.gradient = at::ones({1, 1, 1, 1}).expand(problem.gradient.sizes());
  const Results results = RunPasses(ByLayer, problem);
  problem.gradient = problem.gradient.contiguous();
  const Results expected = RunPasses(ByLayer, problem);
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(results[i], expected[i])) << kResultNames[i];
}

TEST(WinogradConv, Gradients_GoWhereTheyAreAskedFor) {
  const Problem problem({4, 64, 32, 9, 8});
  const Results both = RunPasses(ByLayer, problem);
  const at::Tensor input = problem.input.detach().requires_grad_();
  ByLayer(input, problem.weight).backward(problem.gradient);
  EXPECT_TRUE(at::equal(input.grad(), both[1]));
  EXPECT_FALSE(problem.weight.grad().defined());
  const at::Tensor weight = problem.weight.detach().requires_grad_();
  ByLayer(problem.input, weight).backward(problem.gradient);
  EXPECT_TRUE(at::equal(weight.grad(), both[2]));
  EXPECT_FALSE(problem.input.grad().defined());
  EXPECT_FALSE(ByLayer(problem.input, problem.weight).requires_grad());
}

// As a penalty on gradients needs them.
class WinogradStrides : public ::testing::TestWithParam<int64_t> {};

TEST_P(WinogradStrides, GradientsOfGradients_AreThoseOfTheDefinition) {
  const Problem problem({16, 32, 32, 12, 12, GetParam()});
  const auto penalise = [&problem](const auto& convolution) {
    const at::Tensor input = problem.input.detach().requires_grad_();
    const at::Tensor weight = problem.weight.detach().requires_grad_();
    const at::Tensor output = convolution(input, weight, problem.stride);
    const at::Tensor gradient = torch::autograd::grad({output.mul(output).sum()}, {input}, /*grad_outputs=*/{},
                                                      /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.mul(gradient).sum()}, {weight})[0];
  };
  const at::Tensor expected = penalise(&Direct);
  const at::Tensor difference = penalise(&ByLayer).sub(expected).abs().max();
  EXPECT_LT(difference.item<double>(), 1e-4 * expected.abs().max().item<double>());
}

INSTANTIATE_TEST_SUITE_P(Strides, WinogradStrides, ::testing::Values(1, 2));

TEST(WinogradConv, LayerThatRunsTwice_AddsItsGradients) {
  const Problem problem({4, 32, 32, 9, 8});
  const Results once = RunPasses(ByLayer, problem);
  const Results twice =
      RunPasses([](const at::Tensor& input, const at::Tensor& weight,
                   int64_t stride) { return ByLayer(input, weight, stride) + ByLayer(input, weight, stride); },
                problem);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(at::equal(twice[i], once[i] + once[i])) << kResultNames[i];
}

}  // namespace
}  // namespace ssl
