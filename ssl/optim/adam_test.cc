// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/adam.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <memory>
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
using ::testing::HasSubstr;

constexpr double kRate = 0.05;
constexpr double kDecay = 0.2;

ParameterGroup OneParameter(const std::vector<double>& values) {
  ParameterGroup group;
  group.names = {"w"};
  group.parameters = {at::tensor(values, at::kDouble).set_requires_grad(true)};
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  return group;
}

// The formulas of the header for one element.
struct NaiveAdam {
  AdamOptions options;
  bool decoupled = true;
  int step = 0;
  double average = 0.0;
  double square = 0.0;
  double largest_square = 0.0;

  void Step(double* p, double g) {
    ++step;
    if (decoupled) *p -= kRate * kDecay * *p;
    if (!decoupled) g += kDecay * *p;
    average = options.beta1 * average + (1 - options.beta1) * g;
    square = options.beta2 * square + (1 - options.beta2) * g * g;
    largest_square = std::max(largest_square, square);
    const double root = std::sqrt(options.amsgrad ? largest_square : square);
    const double denominator = root / std::sqrt(1 - std::pow(options.beta2, step)) + options.epsilon;
    *p -= kRate / (1 - std::pow(options.beta1, step)) * average / denominator;
  }
};

void ExpectUpdatesOfTheFormula(absl::StatusOr<std::unique_ptr<Optimizer>> (*make)(const AdamOptions&), bool decoupled) {
  for (const bool amsgrad : {false, true}) {
    const AdamOptions options{0.8, 0.6, 1e-3, amsgrad};
    ASSERT_OK_AND_ASSIGN(const auto adam, make(options));
    ASSERT_OK(adam->Initialize({OneParameter({1.5})}));
    at::Tensor& parameter = adam->groups()[0].parameters[0];
    NaiveAdam naive{options, decoupled};
    double expected = 1.5;
    for (const double grad : {2.0, -0.1, 0.0, 0.4}) {
      parameter.mutable_grad() = at::tensor(std::vector<double>{grad}, at::kDouble);

      adam->Step({});
      naive.Step(&expected, grad);

      EXPECT_NEAR(parameter.item<double>(), expected, 1e-12) << "amsgrad " << amsgrad << " gradient " << grad;
    }
  }
}

TEST(Adam, Updates_FollowTheFormula) { ExpectUpdatesOfTheFormula(&MakeAdam, /*decoupled=*/false); }

TEST(AdamW, Updates_FollowTheFormula) { ExpectUpdatesOfTheFormula(&MakeAdamW, /*decoupled=*/true); }

TEST(AdamW, Steps_AreCountedPerParameter) {
  ASSERT_OK_AND_ASSIGN(const auto adamw, MakeAdamW({}));
  ParameterGroup group = OneParameter({1.0});
  group.names.push_back("late");
  group.parameters.push_back(at::tensor(std::vector<double>{1.0}, at::kDouble).set_requires_grad(true));
  ASSERT_OK(adamw->Initialize({group}));
  at::Tensor& first = adamw->groups()[0].parameters[0];
  at::Tensor& late = adamw->groups()[0].parameters[1];
  first.mutable_grad() = at::tensor(std::vector<double>{1.0}, at::kDouble);
  adamw->Step({});
  late.mutable_grad() = at::tensor(std::vector<double>{1.0}, at::kDouble);

  adamw->Step({});

  // The first update of Adam has the size of the learning rate, whenever it comes.
  EXPECT_NEAR(late.item<double>(), 1.0 * (1.0 - kRate * kDecay) - kRate, 1e-7);
}

TEST(AdamW, State_IsNamedByParameter) {
  ASSERT_OK_AND_ASSIGN(const auto adamw, MakeAdamW({0.9, 0.999, 1e-8, true}));
  ASSERT_OK(adamw->Initialize({OneParameter({1.0})}));
  std::vector<std::string> names;

  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*adamw));
  for (const NamedTensor& entry : state) names.push_back(entry.name);

  EXPECT_THAT(names, ElementsAre("exp_avg/w", "exp_avg_sq/w", "step/w", "max_exp_avg_sq/w"));
}

TEST(AdamW, Config_SetsEverySetting) {
  TestRun run(ConfigNode::Map());

  ASSERT_OK_AND_ASSIGN(const auto adamw,
                       MakeAdamWFromConfig(Yaml("{name: adamw, betas: [0, 0], eps: 1, amsgrad: true}"), run.context()));

  ASSERT_OK(adamw->Initialize({OneParameter({1.0})}));
  EXPECT_EQ(CollectState(*adamw)->size(), 4u);
  at::Tensor& parameter = adamw->groups()[0].parameters[0];
  parameter.mutable_grad() = at::tensor(std::vector<double>{3.0}, at::kDouble);
  adamw->Step({});
  EXPECT_NEAR(parameter.item<double>(), (1.0 - kRate * kDecay) - kRate * 3.0 / (3.0 + 1.0), 1e-12);
}

TEST(AdamW, WrongBetas_AreRefusedWithTheirPlace) {
  TestRun run(ConfigNode::Map());

  EXPECT_THAT(MakeAdamWFromConfig(Yaml("{betas: [0.9]}"), run.context()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: config.OPTIMIZER.betas has 1 entries, expected 2")));
  EXPECT_THAT(MakeAdamWFromConfig(Yaml("{betas: [0.9, 1.0]}"), run.context()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beta is 1, expected a value of at least 0")));
}

}  // namespace
}  // namespace ssl
