// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/recompute.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

at::Tensor Wave(at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7).view(shape);
}

// Linear, batch norm and dropout: parameters, running statistics, random numbers. Counts its runs.
struct Part {
  Part() {
    at::Generator generator = MakeGenerator(5);
    linear = MakeLinear(6, 4, /*use_bias=*/true, generator);
    norm = MakeBatchNorm(4);
  }

  Recomputable AsRecomputable() {
    Recomputable part;
    part.run = [this](const at::Tensor& input, NormMode mode) {
      ++runs;
      return at::tanh(at::dropout(norm.Forward(linear.Forward(input), mode), 0.3, /*train=*/true));
    };
    part.parameters = {linear.weight, linear.bias, norm.weight, norm.bias, norm.running_mean};
    return part;
  }

  LinearLayer linear;
  BatchNormLayer norm;
  int runs = 0;
};

// What a pass over two batches leaves.
std::vector<at::Tensor> Train(bool recompute, bool input_needs_gradient, Autocast format) {
  Part part;
  const Recomputable recomputable = part.AsRecomputable();
  at::Tensor first = Wave({8, 6}).requires_grad_(input_needs_gradient);
  at::manual_seed(3);
  at::Tensor loss;
  {
    const AutocastScope autocast(format);
    const auto run = [&](const at::Tensor& input) {
      return recompute ? RunAndRecompute(recomputable, input) : recomputable.run(input, NormMode::kTraining);
    };
    loss = run(first).to(at::kFloat).pow(2).sum() + run(Wave({5, 6}) * 2.0).to(at::kFloat).sum();
  }
  const at::Tensor drawn_between = at::rand({3});
  loss.backward();
  EXPECT_EQ(part.runs, recompute ? 4 : 2);
  const at::Tensor drawn_after = at::rand({3});
  std::vector<at::Tensor> left = {loss.detach(),
                                  drawn_between,
                                  drawn_after,
                                  part.linear.weight.grad(),
                                  part.linear.bias.grad(),
                                  part.norm.weight.grad(),
                                  part.norm.bias.grad(),
                                  part.norm.running_mean,
                                  part.norm.running_var,
                                  part.norm.num_batches_tracked};
  if (input_needs_gradient) left.push_back(first.grad());
  return left;
}

void ExpectEqual(const std::vector<at::Tensor>& plain, const std::vector<at::Tensor>& recomputed) {
  ASSERT_EQ(plain.size(), recomputed.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], recomputed[i])) << "tensor " << i;
}

TEST(RecomputeTest, Float32_IsBitwiseThePlainRun) {
  for (const bool input_needs_gradient : {false, true}) {
    SCOPED_TRACE(input_needs_gradient);
    ExpectEqual(Train(false, input_needs_gradient, Autocast::kOff), Train(true, input_needs_gradient, Autocast::kOff));
  }
}

TEST(RecomputeTest, Autocast_IsRestoredInTheSecondPass) {
  const std::vector<at::Tensor> plain = Train(false, true, Autocast::kBFloat16);
  const std::vector<at::Tensor> recomputed = Train(true, true, Autocast::kBFloat16);
  const std::vector<at::Tensor> full = Train(false, true, Autocast::kOff);
  EXPECT_TRUE(at::equal(plain[0], recomputed[0])) << "the loss";
  EXPECT_TRUE(at::equal(plain.back(), recomputed.back())) << "the input's gradient passes one graph only";
  EXPECT_FALSE(at::equal(full.back(), recomputed.back()));
}

// The same part recomputed and as it is in one step: a short copy of a weight that the first pass kept without a graph
// would leave the second without a gradient.
TEST(RecomputeTest, Autocast_PlainPassAfterARecomputedOneHasItsGradient) {
  at::Tensor gradients[2];
  for (const bool recompute : {false, true}) {
    at::Generator generator = MakeGenerator(5);
    const LinearLayer linear = MakeLinear(6, 4, /*use_bias=*/false, generator);
    Recomputable part;
    part.run = [&linear](const at::Tensor& input, NormMode) { return linear.Forward(input); };
    part.parameters = {linear.weight};
    at::Tensor loss;
    {
      const AutocastScope autocast(Autocast::kBFloat16);
      const at::Tensor first = recompute ? RunAndRecompute(part, Wave({8, 6})) : linear.Forward(Wave({8, 6}));
      loss = (first + linear.Forward(Wave({8, 6}) * 3.0)).to(at::kFloat).sum();
    }
    loss.backward();
    gradients[recompute ? 1 : 0] = linear.weight.grad();
  }
  EXPECT_TRUE(at::allclose(gradients[0], gradients[1], 2e-2, 2e-2));
}

// Runs when a gradient has been added to its parameter.
class CountArrivals : public torch::autograd::FunctionPostHook {
 public:
  explicit CountArrivals(int* arrivals) : arrivals_(arrivals) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    ++*arrivals_;
    return outputs;
  }

 private:
  int* const arrivals_;
};

TEST(RecomputeTest, GradientOfAParameterArrivesOnce) {
  Part part;
  const Recomputable recomputable = part.AsRecomputable();
  int arrivals = 0;
  const auto accumulator = torch::autograd::impl::grad_accumulator(part.linear.weight);
  accumulator->add_post_hook(std::make_unique<CountArrivals>(&arrivals));
  (RunAndRecompute(recomputable, Wave({8, 6})).sum() + RunAndRecompute(recomputable, Wave({5, 6})).sum()).backward();
  EXPECT_EQ(arrivals, 1);
}

TEST(RecomputeTest, WithoutGradients_RunsOnce) {
  Part part;
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(RunAndRecompute(part.AsRecomputable(), Wave({8, 6})).requires_grad());
  EXPECT_EQ(part.runs, 1);
}

TEST(RecomputeTest, FrozenParameterGetsNoGradient) {
  Part part;
  part.linear.weight.requires_grad_(false);
  RunAndRecompute(part.AsRecomputable(), Wave({8, 6})).sum().backward();
  EXPECT_FALSE(part.linear.weight.grad().defined());
  EXPECT_TRUE(part.linear.bias.grad().defined());
}

TEST(RecomputeTest, ErrorInTheSecondPassReachesTheCaller) {
  Part part;
  Recomputable failing = part.AsRecomputable();
  failing.run = [run = failing.run](const at::Tensor& input, NormMode mode) {
    TORCH_CHECK(mode == NormMode::kTraining, "no second time");
    return run(input, mode);
  };
  const at::Tensor output = RunAndRecompute(failing, Wave({8, 6}));
  EXPECT_THROW(output.sum().backward(), c10::Error);
}

// Weights that change between the two passes would give the gradient of another function.
TEST(RecomputeTest, ChangedParameterIsAnError) {
  Part part;
  const at::Tensor output = RunAndRecompute(part.AsRecomputable(), Wave({8, 6}));
  {
    const at::NoGradGuard no_grad;
    part.linear.weight.add_(1.0);
  }
  EXPECT_THROW(output.sum().backward(), c10::Error);
}

}  // namespace
}  // namespace ssl
