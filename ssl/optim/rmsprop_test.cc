// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/rmsprop.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

constexpr double kRate = 0.05;
constexpr double kDecay = 0.2;

ParameterGroup OneParameter(double value) {
  ParameterGroup group;
  group.names = {"w"};
  group.parameters = {at::tensor(std::vector<double>{value}, at::kDouble).set_requires_grad(true)};
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  return group;
}

// The formula of the header for one element.
struct NaiveRmsprop {
  RmspropOptions options;
  double square = 0.0;
  double average = 0.0;
  double velocity = 0.0;

  void Step(double* p, double g) {
    g += kDecay * *p;
    square = options.alpha * square + (1 - options.alpha) * g * g;
    average = options.alpha * average + (1 - options.alpha) * g;
    const double root = std::sqrt(square - (options.centered ? average * average : 0.0)) + options.epsilon;
    velocity = options.momentum * velocity + g / root;
    *p -= kRate * velocity;
  }
};

// `rmsprop`, made with `options`, over a few steps.
void ExpectUpdates(Optimizer& rmsprop, const RmspropOptions& options) {
  ASSERT_OK(rmsprop.Initialize({OneParameter(1.5)}));
  at::Tensor& parameter = rmsprop.groups()[0].parameters[0];
  NaiveRmsprop naive{options};
  double expected = 1.5;
  for (const double grad : {2.0, -0.1, 0.0, 0.4}) {
    parameter.mutable_grad() = at::tensor(std::vector<double>{grad}, at::kDouble);

    rmsprop.Step({});
    naive.Step(&expected, grad);

    EXPECT_NEAR(parameter.item<double>(), expected, 1e-12) << "gradient " << grad;
  }
}

TEST(Rmsprop, Updates_FollowTheFormula) {
  for (const RmspropOptions& options : {RmspropOptions{0.9, 1e-3, 0.0, false}, RmspropOptions{0.9, 1e-3, 0.8, false},
                                        RmspropOptions{0.7, 1e-2, 0.5, true}}) {
    ExpectUpdates(*MakeRmsprop(options), options);
  }
}

TEST(Rmsprop, Config_SetsEverySetting) {
  TestRun run(ConfigNode::Map());

  ASSERT_OK_AND_ASSIGN(
      const auto rmsprop,
      MakeRmspropFromConfig(Yaml("{name: rmsprop, alpha: 0.5, eps: 0.1, momentum: 0.3, centered: true}"),
                            run.context()));

  ExpectUpdates(*rmsprop, {0.5, 0.1, 0.3, true});
}

TEST(Rmsprop, State_IsWhatTheSettingsNeed) {
  const auto names_of = [](const RmspropOptions& options) {
    const auto rmsprop = MakeRmsprop(options);
    EXPECT_OK(rmsprop->Initialize({OneParameter(1.0)}));
    std::vector<std::string> names;
    const std::vector<NamedTensor> state = CollectState(*rmsprop).value();
    for (const NamedTensor& entry : state) names.push_back(entry.name);
    return names;
  };

  EXPECT_THAT(names_of({0.9, 1e-8, 0.0, false}), ElementsAre("square_avg/w"));
  EXPECT_THAT(names_of({0.9, 1e-8, 0.9, true}), ElementsAre("square_avg/w", "momentum/w", "grad_avg/w"));
}

}  // namespace
}  // namespace ssl
