// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/module_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Matcher;
using ::testing::Pair;

at::Tensor Wave(at::IntArrayRef shape, double pace) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * pace).view(shape);
}

// first: a linear layer with a bias; second: one without, behind a tanh.
struct TwoLayers {
  at::Tensor images = Wave({4, 3}, 0.7);
  at::Tensor weight = Wave({5, 3}, 0.3).requires_grad_(true);
  at::Tensor bias = Wave({5}, 0.9).requires_grad_(true);
  at::Tensor last = Wave({2, 5}, 0.5).requires_grad_(true);
  at::Tensor hidden, outputs;

  std::vector<NamedParameter> Parameters() const {
    return {{"first.weight", weight}, {"first.bias", bias}, {"second.weight", last}};
  }

  // Half the sum of squared outputs: their gradient is the outputs.
  at::Tensor Loss() {
    hidden = at::tanh(at::linear(images, weight, bias));
    outputs = at::linear(hidden, last);
    return at::square(outputs).sum() * 0.5;
  }

  at::Tensor GradientOfHidden() const {
    const at::NoGradGuard no_grad;
    return outputs.matmul(last);
  }

  double GradientOfFirst() const {
    const at::NoGradGuard no_grad;
    return (GradientOfHidden() * (1 - at::square(hidden))).norm().item<double>();
  }
};

std::map<std::string, double> Values(ModuleGradients& gradients, Communicator& communicator) {
  std::map<std::string, double> values;
  const auto norms = gradients.Take(communicator);
  EXPECT_OK(norms);
  for (const auto& [module, norm] : *norms) values[module] = norm.item<double>();
  return values;
}

std::map<std::string, double> Values(ModuleGradients& gradients) { return Values(gradients, *MakeLocalCommunicator()); }

TEST(ModuleGradientsTest, Outputs_AreThoseOfTheModulesOperations) {
  TwoLayers layers;
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, layers.Parameters(), {"first.bias", "second.weight"});
  const at::Tensor loss = layers.Loss();
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("first", DoubleNear(layers.GradientOfFirst(), 1e-5)),
                                             Pair("second", DoubleNear(layers.outputs.norm().item<double>(), 1e-5))));
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("first", 0.0), Pair("second", 0.0))) << "each pass once";
}

// A 0 would look measured: a gradient that vanishes at the first layer.
TEST(ModuleGradientsTest, InputsThatWantNoGradient_AreNotThere) {
  TwoLayers layers;
  ModuleGradients gradients(ModuleGradients::Kind::kInput, layers.Parameters(), {"first.weight", "second.weight"});
  const at::Tensor loss = layers.Loss();
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  const double expected = layers.GradientOfHidden().norm().item<double>();
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("second", DoubleNear(expected, 1e-5))));
}

// Rank 0 has a hidden layer before the branch, rank 1 images, rank 2 has not come to it.
TEST(ModuleGradientsTest, Names_AreThoseOfAllRanks) {
  EXPECT_OK(ThreadWorld(3, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    TwoLayers layers;
    const at::Tensor branch = Wave({2, 5}, 0.4).requires_grad_(true);
    std::vector<NamedParameter> parameters = layers.Parameters();
    parameters.push_back({"branch.weight", branch});
    ModuleGradients gradients(ModuleGradients::Kind::kInput, parameters,
                              {"first.weight", "second.weight", "branch.weight"});
    at::Tensor loss = layers.Loss();
    if (communicator.rank() == 0) loss = loss + at::square(at::linear(layers.hidden, branch)).sum();
    if (communicator.rank() == 1) loss = loss + at::square(at::linear(Wave({4, 5}, 0.1), branch)).sum();
    gradients.Watch(loss, /*batches=*/1);
    loss.backward();
    const auto of_branch = communicator.rank() == 0 ? Matcher<double>(Gt(0.0)) : Matcher<double>(0.0);
    EXPECT_THAT(Values(gradients, communicator), ElementsAre(Pair("branch", of_branch), Pair("second", Gt(0.0))))
        << communicator.rank();
    return absl::OkStatus();
  }));
}

// As a part that runs again in backward is, whoever has made it so.
struct BothAtOnce : public torch::autograd::Function<BothAtOnce> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input, const at::Tensor& first,
                            const at::Tensor& second) {
    return at::linear(at::linear(input, first), second);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    return {at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

TEST(ModuleGradientsTest, ModulesThatAreOneOperation_HaveNoGradientOfTheirOwn) {
  at::Tensor first = Wave({5, 3}, 0.3).requires_grad_(true);
  at::Tensor second = Wave({4, 5}, 0.5).requires_grad_(true);
  at::Tensor third = Wave({2, 4}, 0.7).requires_grad_(true);
  const std::vector<NamedParameter> parameters = {
      {"a.first.weight", first}, {"a.second.weight", second}, {"third.weight", third}};
  for (const auto kind : {ModuleGradients::Kind::kOutput, ModuleGradients::Kind::kInput}) {
    ModuleGradients gradients(kind, parameters, {"a.first.weight", "third.weight"});
    const at::Tensor loss = at::square(at::linear(BothAtOnce::apply(Wave({4, 3}, 0.7), first, second), third)).sum();
    gradients.Watch(loss, /*batches=*/1);
    EXPECT_THAT(gradients.shared(), ElementsAre("a.first")) << "the other is not watched";
    loss.backward();
    EXPECT_THAT(Values(gradients), ElementsAre(Pair("third", Gt(0.0))));
    EXPECT_THAT(gradients.shared(), IsEmpty());
  }
}

TEST(ModuleGradientsTest, AModuleOfWhichOneParameterIsWatched_IsAlone) {
  TwoLayers layers;
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, layers.Parameters(), {"first.bias"});
  gradients.Watch(layers.Loss(), /*batches=*/1);
  EXPECT_THAT(gradients.shared(), IsEmpty());
}

TEST(ModuleGradientsTest, TheLossScale_IsTakenOutAndBatchesAreOne) {
  TwoLayers layers;
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, layers.Parameters(), {"second.weight"});
  for (int batch = 0; batch < 2; ++batch) {
    const at::Tensor loss = layers.Loss();
    gradients.Watch(loss, /*batches=*/2);
    (loss * (1024.0 / 2)).backward();
  }
  const double expected = layers.outputs.norm().item<double>() * std::sqrt(2.0) / 2;
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("second", DoubleNear(expected, 1e-5))));
}

TEST(ModuleGradientsTest, AModuleThatIsCalledTwice_HasBothCalls) {
  at::Tensor weight = Wave({4, 3, 3, 3}, 0.2).requires_grad_(true);
  const at::Tensor large = at::conv2d(Wave({2, 3, 8, 8}, 0.1), weight);
  const at::Tensor small = at::conv2d(Wave({2, 3, 5, 5}, 0.1), weight);
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, {{"conv.weight", weight}}, {"conv.weight"});
  const at::Tensor loss = (at::square(large).sum() + at::square(small).sum()) * 0.5;
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  const double expected = std::hypot(large.norm().item<double>(), small.norm().item<double>());
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("conv", DoubleNear(expected, 1e-4))));
}

// A branch that one rank takes and another does not must not give them different names to reduce.
TEST(ModuleGradientsTest, AModuleThatBackwardHasNotComeTo_IsZeroAndAFrozenOneIsNotThere) {
  TwoLayers layers;
  std::vector<NamedParameter> parameters = layers.Parameters();
  parameters.push_back({"branch.weight", Wave({5, 3}, 0.4).requires_grad_(true)});
  parameters.push_back({"frozen.weight", Wave({5, 3}, 0.4)});
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, parameters,
                            {"second.weight", "branch.weight", "frozen.weight"});
  const at::Tensor loss = layers.Loss();
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  EXPECT_THAT(Values(gradients),
              ElementsAre(Pair("branch", 0.0), Pair("second", DoubleNear(layers.outputs.norm().item<double>(), 1e-5))));
}

TEST(ModuleGradientsTest, Float64_IsMeasuredAsWell) {
  const at::Tensor weight = Wave({2, 3}, 0.2).to(at::kDouble).requires_grad_(true);
  const at::Tensor outputs = at::linear(Wave({4, 3}, 0.7).to(at::kDouble), weight);
  ModuleGradients gradients(ModuleGradients::Kind::kOutput, {{"last.weight", weight}}, {"last.weight"});
  const at::Tensor loss = at::square(outputs).sum() * 0.5;
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("last", DoubleNear(outputs.norm().item<double>(), 1e-5))));
}

TEST(ModuleGradientsTest, GradientsOfParameters_StayAsTheyAre) {
  TwoLayers plain;
  plain.Loss().backward();
  TwoLayers watched;
  ModuleGradients outputs(ModuleGradients::Kind::kOutput, watched.Parameters(), {"first.weight", "second.weight"});
  ModuleGradients inputs(ModuleGradients::Kind::kInput, watched.Parameters(), {"first.weight", "second.weight"});
  const at::Tensor loss = watched.Loss();
  outputs.Watch(loss, /*batches=*/1);
  inputs.Watch(loss, /*batches=*/1);
  loss.backward();
  EXPECT_TRUE(at::equal(watched.weight.grad(), plain.weight.grad()));
  EXPECT_TRUE(at::equal(watched.bias.grad(), plain.bias.grad()));
  EXPECT_TRUE(at::equal(watched.last.grad(), plain.last.grad()));
}

}  // namespace
}  // namespace ssl
