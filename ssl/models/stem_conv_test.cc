// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/stem_conv.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <ostream>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/models/layers.h"
#include "ssl/models/winograd_kernels.h"

namespace ssl {
namespace {

constexpr int64_t kSeed = 20261123;
// Transformations add and subtract before the products are rounded, which the definition does not.
constexpr double kLargestErrorRatio = 4.0;

struct Shape {
  int64_t OutHeight() const { return (height + 1) / 2; }
  int64_t OutWidth() const { return (width + 1) / 2; }

  int64_t batch, out, height, width;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << " images of " << s.height << " x " << s.width << ", " << s.out << " channels";
}

at::Tensor Random(at::IntArrayRef sizes, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  return at::empty(sizes, at::kFloat).normal_(0.0, 1.0, generator).contiguous(at::MemoryFormat::ChannelsLast);
}

struct Problem {
  explicit Problem(const Shape& s)
      : input(Random({s.batch, 3, s.height, s.width}, kSeed)),
        weight(Random({s.out, 3, 7, 7}, kSeed + 1)),
        gradient(Random({s.batch, s.out, s.OutHeight(), s.OutWidth()}, kSeed + 2)) {}

  at::Tensor input;
  at::Tensor weight;
  at::Tensor gradient;  // of the output
};

// Output, gradient of the weight.
using Results = std::array<at::Tensor, 2>;
constexpr std::array<const char*, 2> kResultNames = {"output", "gradient of the weight"};

ConvLayer Layer(const at::Tensor& weight) {
  return ConvLayer{weight, /*bias=*/{}, /*stride=*/2, /*padding=*/3, /*groups=*/1};
}
at::Tensor ByLayer(const at::Tensor& input, const at::Tensor& weight) { return Layer(weight).Forward(input); }
at::Tensor Direct(const at::Tensor& input, const at::Tensor& weight) {
  return at::conv2d(input, weight, /*bias=*/{}, /*stride=*/2, /*padding=*/3);
}

template <typename Convolution>
Results RunPasses(const Convolution& convolution, const Problem& problem) {
  const at::Tensor weight = problem.weight.detach().requires_grad_();
  const at::Tensor output = convolution(problem.input, weight);
  output.backward(problem.gradient);
  return {output.detach(), weight.grad()};
}

// The definition, in double: y of [N, height, width, out] and dw of [out, 7, 7, 3].
struct Definition {
  Definition(const Shape& s, const Problem& problem)
      : shape(s), x(Values(problem.input)), w(Values(problem.weight)), dy(Values(problem.gradient)) {
    y.resize(dy.size());
    dw.resize(w.size());
    for (int64_t pixel = 0; pixel < s.batch * s.OutHeight() * s.OutWidth(); ++pixel) {
      for (int64_t tap = 0; tap < 49; ++tap) AddTap(pixel, tap);
    }
  }

  static std::vector<double> Values(const at::Tensor& tensor) {
    const at::Tensor values = tensor.permute({0, 2, 3, 1}).to(at::kDouble).contiguous();
    return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  }

  // pixel: of the output.
  void AddTap(int64_t pixel, int64_t tap) {
    const int64_t map = pixel / (shape.OutWidth() * shape.OutHeight());
    const int64_t row = pixel / shape.OutWidth() % shape.OutHeight() * 2 + tap / 7 - 3;
    const int64_t column = pixel % shape.OutWidth() * 2 + tap % 7 - 3;
    if (row < 0 || row >= shape.height || column < 0 || column >= shape.width) return;
    const int64_t from = ((map * shape.height + row) * shape.width + column) * 3;
    for (int64_t out = 0; out < shape.out; ++out) {
      for (int64_t c = 0; c < 3; ++c) {
        y[pixel * shape.out + out] += x[from + c] * w[(out * 49 + tap) * 3 + c];
        dw[(out * 49 + tap) * 3 + c] += dy[pixel * shape.out + out] * x[from + c];
      }
    }
  }

  const Shape shape;
  const std::vector<double> x, w, dy;
  std::vector<double> y, dw;
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

std::atomic<int> stem_calls{0};

std::unique_ptr<at::ObserverContext> CountStem(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "ssl::stem_convolution") ++stem_calls;
  return nullptr;
}

int StemCallsOf(const ConvLayer& layer, const at::Tensor& input) {
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&CountStem));
  stem_calls = 0;
  layer.Forward(input);
  at::removeCallback(handle);
  return stem_calls;
}

// On a machine without AVX-512 nothing takes it.
const int kTaken = HasWinogradKernels() ? 1 : 0;

class StemShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(StemShapes, Passes_AreAsExactAsTheDefinitionInFloat) {
  const Problem problem(GetParam());
  ASSERT_EQ(StemCallsOf(Layer(problem.weight), problem.input), kTaken);
  const Results results = RunPasses(ByLayer, problem);
  const Results direct = RunPasses(Direct, problem);
  const Definition exact(GetParam(), problem);
  const std::array<const std::vector<double>*, 2> expected = {&exact.y, &exact.dw};
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(results[i].sizes(), direct[i].sizes()) << kResultNames[i];
    EXPECT_TRUE(results[i].is_contiguous(at::MemoryFormat::ChannelsLast)) << kResultNames[i];
    const double allowed = kLargestErrorRatio * LargestError(direct[i], *expected[i]);
    EXPECT_LE(LargestError(results[i], *expected[i]), allowed) << kResultNames[i];
  }
}

TEST_P(StemShapes, OneThreadAndTwo_AgreeBitForBit) {
  const Problem problem(GetParam());
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Results one = RunPasses(ByLayer, problem);
  at::set_num_threads(2);
  const Results two = RunPasses(ByLayer, problem);
  at::set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], two[i])) << kResultNames[i];
}

// Even and odd sides, tiles that hang over, one image, more tiles than a group, a fold or a part has.
INSTANTIATE_TEST_SUITE_P(Sizes, StemShapes,
                         ::testing::Values(Shape{2, 64, 48, 48}, Shape{1, 32, 96, 96}, Shape{5, 64, 35, 38},
                                           Shape{3, 32, 61, 29}, Shape{64, 32, 9, 12}, Shape{70, 96, 31, 8},
                                           Shape{2, 512, 48, 42}, Shape{40, 32, 48, 48}));

TEST(StemConv, Layers_TakeItForImagesInFloat) {
  const at::Tensor images = Random({2, 3, 48, 48}, kSeed);
  const at::Tensor weight = Random({64, 3, 7, 7}, kSeed);
  EXPECT_EQ(StemCallsOf(Layer(weight), images), kTaken);
  EXPECT_EQ(StemCallsOf(Layer(weight), images.contiguous()), kTaken);
  EXPECT_EQ(StemCallsOf(Layer(weight), images.narrow(0, 0, 0)), 0);
  EXPECT_EQ(StemCallsOf(Layer(weight), Random({1, 3, 40, 40}, kSeed)), 0);
  EXPECT_EQ(StemCallsOf(Layer(weight.narrow(0, 0, 48)), images), 0);
  // Fewer products by the definition: most taps meet padding.
  EXPECT_EQ(StemCallsOf(Layer(weight), Random({64, 3, 1, 1}, kSeed)), 0);
  EXPECT_EQ(StemCallsOf(Layer(weight), Random({70, 3, 11, 3}, kSeed)), 0);
  EXPECT_EQ(StemCallsOf(Layer(weight.narrow(2, 0, 5)), images), 0);
  EXPECT_EQ(StemCallsOf(Layer(weight.narrow(1, 0, 1)), images.narrow(1, 0, 1)), 0);
  ConvLayer other = Layer(weight);
  other.stride = 1;
  EXPECT_EQ(StemCallsOf(other, images), 0);
  other = Layer(weight);
  other.padding = 2;
  EXPECT_EQ(StemCallsOf(other, images), 0);
  other = Layer(weight);
  other.bias = at::ones({64});
  EXPECT_EQ(StemCallsOf(other, images), 0);
}

TEST(StemConv, Autocast_LeavesItOut) {
  const Problem problem({2, 64, 48, 48});
  const AutocastScope autocast(Autocast::kBFloat16);
  EXPECT_EQ(ByLayer(problem.input, problem.weight).scalar_type(), at::kBFloat16);
}

TEST(StemConv, OtherStrides_GiveTheSameBits) {
  Problem problem({6, 64, 35, 38});
  const Results expected = RunPasses(ByLayer, problem);
  problem.input = problem.input.contiguous();
  problem.weight = problem.weight.contiguous();
  problem.gradient = problem.gradient.contiguous();
  const Results results = RunPasses(ByLayer, problem);
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(results[i], expected[i])) << kResultNames[i];
}

TEST(StemConv, GradientThatIsOneNumber_IsRead) {
  Problem problem({2, 64, 48, 48});
  problem.gradient = at::ones({1, 1, 1, 1}).expand(problem.gradient.sizes());
  const Results results = RunPasses(ByLayer, problem);
  problem.gradient = problem.gradient.contiguous();
  EXPECT_TRUE(at::equal(results[1], RunPasses(ByLayer, problem)[1]));
}

TEST(StemConv, GradientOfTheInput_IsThatOfTheDefinition) {
  const Problem problem({2, 64, 48, 48});
  const auto gradient_of_input = [&problem](const auto& convolution) {
    const at::Tensor input = problem.input.detach().requires_grad_();
    convolution(input, problem.weight).backward(problem.gradient);
    return input.grad();
  };
  EXPECT_TRUE(at::equal(gradient_of_input(ByLayer), gradient_of_input(Direct)));
  EXPECT_FALSE(problem.weight.grad().defined());
}

// As a penalty on gradients needs them.
TEST(StemConv, GradientsOfGradients_AreThoseOfTheDefinition) {
  const Problem problem({2, 32, 48, 48});
  const auto penalise = [&problem](const auto& convolution) {
    const at::Tensor input = problem.input.detach().requires_grad_();
    const at::Tensor weight = problem.weight.detach().requires_grad_();
    const at::Tensor output = convolution(input, weight);
    const at::Tensor gradient = torch::autograd::grad({output.mul(output).sum()}, {input}, /*grad_outputs=*/{},
                                                      /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.mul(gradient).sum()}, {weight})[0];
  };
  const at::Tensor expected = penalise(&Direct);
  const at::Tensor difference = penalise(&ByLayer).sub(expected).abs().max();
  EXPECT_LT(difference.item<double>(), 1e-4 * expected.abs().max().item<double>());
}

}  // namespace
}  // namespace ssl
