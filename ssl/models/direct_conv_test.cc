// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/direct_conv.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cstdint>
#include <ostream>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

constexpr int64_t kSeed = 20261129;
constexpr double kLargestErrorRatio = 4.0;

struct Shape {
  int64_t batch, in, out, side, kernel;
  int64_t stride = 1;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << " maps of " << s.side << " x " << s.side << ", " << s.in << " to " << s.out << " channels, kernel "
       << s.kernel << ", stride " << s.stride;
}

at::Tensor Random(at::IntArrayRef sizes, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  return at::empty(sizes, at::kFloat).normal_(0.0, 1.0, generator).contiguous(at::MemoryFormat::ChannelsLast);
}

struct Problem {
  explicit Problem(const Shape& s)
      : input(Random({s.batch, s.in, s.side, s.side}, kSeed)),
        weight(Random({s.out, s.in, s.kernel, s.kernel}, kSeed + 1)),
        gradient(Random(at::conv2d(input, weight, {}, s.stride, s.kernel / 2).sizes(), kSeed + 2)),
        stride(s.stride),
        padding(s.kernel / 2) {}

  void Cast(at::ScalarType type) {
    for (at::Tensor* tensor : {&input, &weight, &gradient}) *tensor = tensor->to(type);
  }

  at::Tensor input;
  at::Tensor weight;
  at::Tensor gradient;  // of the output
  int64_t stride;
  int64_t padding;
};

// Output, gradient of the input, gradient of the weight.
using Results = std::array<at::Tensor, 3>;

at::Tensor Direct(const at::Tensor& input, const at::Tensor& weight, int64_t stride, int64_t padding) {
  EXPECT_TRUE(TakesDirectConv(input, weight));
  return DirectConv(input, weight, stride, padding);
}

at::Tensor LibTorchs(const at::Tensor& input, const at::Tensor& weight, int64_t stride, int64_t padding) {
  return at::conv2d(input, weight, /*bias=*/{}, stride, padding);
}

template <typename Convolution>
Results RunPasses(const Convolution& convolution, const Problem& problem) {
  const at::Tensor input = problem.input.detach().requires_grad_();
  const at::Tensor weight = problem.weight.detach().requires_grad_();
  const at::Tensor output = convolution(input, weight, problem.stride, problem.padding);
  output.backward(problem.gradient.to(output.scalar_type()));
  return {output.detach(), input.grad(), weight.grad()};
}

double LargestError(const at::Tensor& tensor, const at::Tensor& exact) {
  return tensor.to(at::kDouble).sub(exact).abs().max().item<double>();
}

class DirectConvShapes : public ::testing::TestWithParam<Shape> {};

// In bfloat16 each part of a sum is rounded, and so is their sum. In float32 the largest error of few short sums is of
// either order of adding by chance.
TEST_P(DirectConvShapes, AllPasses_AreAsExactAsLibTorchs) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Problem problem(GetParam());
    problem.Cast(type);
    const Results results = RunPasses(&Direct, problem);
    const Results expected = RunPasses(&LibTorchs, problem);
    problem.Cast(at::kDouble);
    const Results exact = RunPasses(&LibTorchs, problem);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].scalar_type(), type);
      EXPECT_EQ(results[i].sizes(), exact[i].sizes());
      EXPECT_LE(LargestError(results[i], exact[i]), kLargestErrorRatio * LargestError(expected[i], exact[i])) << type << " " << i;
    }
  }
}

TEST_P(DirectConvShapes, OneThreadAndThree_MakeTheSameGradientOfTheWeights) {
  const int threads = at::get_num_threads();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Problem problem(GetParam());
    problem.Cast(type);
    at::set_num_threads(1);
    const Results one = RunPasses(&Direct, problem);
    at::set_num_threads(3);
    const Results three = RunPasses(&Direct, problem);
    at::set_num_threads(threads);
    EXPECT_TRUE(at::equal(one[2], three[2])) << type;
  }
}

// Two parts, an odd batch, parts of their own size, kernels of one pixel, strides, few channels.
INSTANTIATE_TEST_SUITE_P(Shapes, DirectConvShapes,
                         ::testing::Values(Shape{2, 16, 16, 9, 3}, Shape{7, 16, 32, 8, 3}, Shape{3, 3, 5, 11, 3},
                                           Shape{64, 48, 48, 28, 3}, Shape{9, 48, 40, 10, 3, 2},
                                           Shape{33, 64, 48, 14, 1}, Shape{5, 20, 12, 12, 1, 2},
                                           Shape{6, 3, 16, 20, 7, 2}));

TEST(DirectConv, Autocast_CastsAsLibTorchDoes) {
  const Problem problem({8, 48, 32, 10, 3});
  const AutocastScope autocast(Autocast::kBFloat16);
  const Results results = RunPasses(&Direct, problem);
  const Results expected = RunPasses(&LibTorchs, problem);
  EXPECT_EQ(results[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(results[2].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(results[0], expected[0]));
  EXPECT_LT(LargestError(results[2], expected[2].to(at::kDouble)), 0.01 * expected[2].abs().max().item<double>());
}

TEST(DirectConv, TakesBatchesOfFloatsOnly) {
  const Problem problem({4, 8, 8, 6, 3});
  EXPECT_TRUE(TakesDirectConv(problem.input, problem.weight));
  EXPECT_FALSE(TakesDirectConv(problem.input.narrow(0, 0, 1), problem.weight));
  EXPECT_FALSE(TakesDirectConv(problem.input.narrow(0, 0, 0), problem.weight));
  EXPECT_FALSE(TakesDirectConv(problem.input.to(at::kBFloat16), problem.weight));
  EXPECT_FALSE(TakesDirectConv(problem.input.to(at::kDouble), problem.weight.to(at::kDouble)));
  const AutocastScope autocast(Autocast::kFloat16);
  EXPECT_FALSE(TakesDirectConv(problem.input, problem.weight));
}

TEST(DirectConv, Gradients_GoWhereTheyAreAskedFor) {
  const Problem problem({4, 16, 32, 9, 3});
  const Results both = RunPasses(&Direct, problem);
  const at::Tensor input = problem.input.detach().requires_grad_();
  Direct(input, problem.weight, 1, 1).backward(problem.gradient);
  EXPECT_TRUE(at::equal(input.grad(), both[1]));
  EXPECT_FALSE(problem.weight.grad().defined());
  const at::Tensor weight = problem.weight.detach().requires_grad_();
  Direct(problem.input, weight, 1, 1).backward(problem.gradient);
  EXPECT_TRUE(at::equal(weight.grad(), both[2]));
  EXPECT_FALSE(problem.input.grad().defined());
  EXPECT_FALSE(Direct(problem.input, problem.weight, 1, 1).requires_grad());
}

// As a penalty on gradients needs them.
TEST(DirectConv, GradientsOfGradients_AreThoseOfLibTorch) {
  const Problem problem({6, 16, 24, 9, 3, 2});
  const auto penalise = [&problem](const auto& convolution) {
    const at::Tensor input = problem.input.detach().requires_grad_();
    const at::Tensor weight = problem.weight.detach().requires_grad_();
    const at::Tensor output = convolution(input, weight, problem.stride, problem.padding);
    const at::Tensor gradient = torch::autograd::grad({output.mul(output).sum()}, {input}, /*grad_outputs=*/{},
                                                      /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.mul(gradient).sum()}, {weight})[0];
  };
  const at::Tensor expected = penalise(&LibTorchs);
  EXPECT_LT(LargestError(penalise(&Direct), expected.to(at::kDouble)), 1e-4 * expected.abs().max().item<double>());
}

}  // namespace
}  // namespace ssl
