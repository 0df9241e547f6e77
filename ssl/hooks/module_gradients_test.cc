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

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
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

std::map<std::string, double> Values(ModuleGradients& gradients) {
  std::map<std::string, double> values;
  for (const auto& [module, norm] : gradients.Take()) values[module] = norm.item<double>();
  return values;
}

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

TEST(ModuleGradientsTest, Inputs_AreZeroForImages) {
  TwoLayers layers;
  ModuleGradients gradients(ModuleGradients::Kind::kInput, layers.Parameters(), {"first.weight", "second.weight"});
  const at::Tensor loss = layers.Loss();
  gradients.Watch(loss, /*batches=*/1);
  loss.backward();
  const double expected = layers.GradientOfHidden().norm().item<double>();
  EXPECT_THAT(Values(gradients), ElementsAre(Pair("first", 0.0), Pair("second", DoubleNear(expected, 1e-5))));
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
