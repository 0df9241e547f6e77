// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/momentum_schedule.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/larc.h"
#include "ssl/optim/lars.h"
#include "ssl/optim/rmsprop.h"
#include "ssl/optim/sgd.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kDecay = 0.1;
constexpr double kRate = 0.05;
// As schedules may give them: 0 first, in between and several times.
const std::vector<double> kMomenta = {0.0, 0.5, 0.9, 0.0, 0.0, 0.7, 1.0, 0.25};

ParameterGroup OneParameter(const std::vector<double>& values) {
  ParameterGroup group;
  group.names = {"w"};
  group.parameters = {at::tensor(values, at::kDouble).set_requires_grad(true)};
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  return group;
}

std::vector<double> GradientAt(size_t step) {
  return {0.3 * static_cast<double>(step), -1.0, 2.0 - static_cast<double>(step)};
}

TEST(MomentumSchedule, Sgd_FollowsTheFormulaFromStepToStep) {
  for (const bool nesterov : {false, true}) {
    SCOPED_TRACE(nesterov);
    std::vector<double> expected = {1.0, -2.0, 0.5};
    std::vector<double> velocity(expected.size(), 0.0);
    ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd({0.0, nesterov, "momentum"}));
    ASSERT_OK(sgd->Initialize({OneParameter(expected)}));
    ParameterGroup& group = sgd->groups()[0];
    for (size_t step = 0; step < kMomenta.size(); ++step) {
      const std::vector<double> gradient = GradientAt(step);
      group.parameters[0].mutable_grad() = at::tensor(gradient, at::kDouble);
      group.momentum = kMomenta[step];

      sgd->Step({});

      for (size_t i = 0; i < expected.size(); ++i) {
        const double g = gradient[i] + kDecay * expected[i];
        velocity[i] = kMomenta[step] * velocity[i] + g;
        expected[i] -= kRate * (nesterov ? g + kMomenta[step] * velocity[i] : velocity[i]);
        EXPECT_NEAR(group.parameters[0][i].item<double>(), expected[i], 1e-14) << "step " << step;
      }
    }
  }
}

at::Tensor Trained(Optimizer& optimizer, double momentum) {
  EXPECT_OK(optimizer.Initialize({OneParameter({1.0, -2.0, 0.5})}));
  ParameterGroup& group = optimizer.groups()[0];
  for (size_t step = 0; step < 4; ++step) {
    group.parameters[0].mutable_grad() = at::tensor(GradientAt(step), at::kDouble);
    group.momentum = momentum;
    optimizer.Step({});
  }
  return group.parameters[0].detach();
}

// A schedule that stays at 0.75 trains what a momentum of 0.75 does, whatever the momentum beside it.
TEST(MomentumSchedule, EveryOptimizerWithAMomentum_TakesItFromItsGroups) {
  using Pair = std::pair<std::unique_ptr<Optimizer>, std::unique_ptr<Optimizer>>;
  std::vector<Pair> pairs;
  pairs.emplace_back(*MakeSgd({0.75, true}), *MakeSgd({0.1, true, "momentum"}));
  pairs.emplace_back(MakeLarc({}, *MakeSgd({0.75, false})), MakeLarc({}, *MakeSgd({0.0, false, "momentum"})));
  pairs.emplace_back(MakeLars({0.75, 0.01, true}), MakeLars({0.0, 0.01, true, "momentum"}));
  pairs.emplace_back(MakeRmsprop({0.99, 1e-8, 0.75, false}), MakeRmsprop({0.99, 1e-8, 0.0, false, "momentum"}));
  for (const auto& [constant, scheduled] : pairs) {
    EXPECT_TRUE(at::equal(Trained(*scheduled, 0.75), Trained(*constant, 0.75)));
    EXPECT_FALSE(at::equal(Trained(*scheduled, 0.5), Trained(*constant, 0.75)));
    EXPECT_EQ(scheduled->groups()[0].momentum_schedule, "momentum");
    EXPECT_EQ(constant->groups()[0].momentum_schedule, "");
  }
}

absl::StatusOr<std::unique_ptr<Optimizer>> FromConfig(const std::string& name, const std::string& yaml) {
  TestRun run(Yaml("OPTIMIZER: {num_epochs: 10}"));
  return run.registries().optimizers.Make(name, Yaml(yaml), run.context());
}

TEST(MomentumSchedule, Config_NamesTheSchedule) {
  for (const char* name : {"sgd", "lars", "rmsprop"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const auto optimizer,
                         FromConfig(name,
                                    "{momentum: 0, param_schedulers: {momentum: {name: linear, start_value: 0.5, "
                                    "end_value: 0.9}}}"));
    ASSERT_OK(optimizer->Initialize({OneParameter({1.0})}));
    EXPECT_EQ(optimizer->groups()[0].momentum_schedule, "momentum");
    ASSERT_OK_AND_ASSIGN(const auto plain, FromConfig(name, "{momentum: 0.5, param_schedulers: {momentum: null}}"));
    ASSERT_OK(plain->Initialize({OneParameter({1.0})}));
    EXPECT_EQ(plain->groups()[0].momentum_schedule, "");
    EXPECT_EQ(plain->groups()[0].momentum, 0.5);
  }
}

TEST(MomentumSchedule, NesterovWithASchedule_NeedsNoMomentumBesideIt) {
  EXPECT_OK(FromConfig("sgd", "{momentum: 0, nesterov: true, param_schedulers: {momentum: {value: 0.9}}}"));
}

TEST(MomentumSchedule, WhatIsNoMomentum_IsRefusedWithItsPlace) {
  EXPECT_THAT(FromConfig("sgd", "param_schedulers:\n  momentum: {name: linear, start_value: 0.5, end_value: 1.5}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2: config.OPTIMIZER.param_schedulers.momentum is 1.001"),
                             HasSubstr("after 50.1 % of training, expected values between 0 and 1"))));
  EXPECT_THAT(FromConfig("sgd", "param_schedulers:\n  momentum: {name: linaer}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("linear")));
  EXPECT_THAT(
      FromConfig("sgd", "param_schedulers:\n  momentum: 0.9"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("test.yaml:2: config.OPTIMIZER.param_schedulers.momentum is '0.9', expected a schedule")));
  EXPECT_THAT(FromConfig("adamw", "name: adamw\nparam_schedulers:\n  momentum: {value: 0.9}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:3: config.OPTIMIZER.param_schedulers.momentum: 'adamw' has betas")));
}

}  // namespace
}  // namespace ssl
