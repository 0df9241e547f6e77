// SPDX-License-Identifier: Apache-2.0
//
// LARC and LARS against their formulas, element by element.
#include "ssl/optim/larc.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/optim/lars.h"
#include "ssl/optim/sgd.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr double kRate = 0.3;
constexpr double kDecay = 0.1;
constexpr double kMomentum = 0.9;

// Parameters "p0", "p1", ... with weight decay.
ParameterGroup Group(const std::vector<Values>& parameters) {
  ParameterGroup group;
  group.learning_rate = kRate;
  group.weight_decay = kDecay;
  for (const Values& values : parameters) {
    group.names.push_back("p" + std::to_string(group.names.size()));
    group.parameters.push_back(at::tensor(values, at::kDouble).set_requires_grad(true));
  }
  return group;
}

double Norm(const Values& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// The gradient that the inner optimizer sees.
Values LarcGradient(const LarcOptions& options, const Values& p, Values g) {
  if (Norm(p) == 0.0 || Norm(g) == 0.0) return g;
  double rate = options.trust_coefficient * Norm(p) / (Norm(g) + kDecay * Norm(p) + options.epsilon);
  if (options.clip) rate = std::min(rate / kRate, 1.0);
  for (size_t i = 0; i < g.size(); ++i) g[i] = rate * (g[i] + kDecay * p[i]);
  return g;
}

Values LarsGradient(const LarsOptions& options, const Values& p, Values g) {
  for (size_t i = 0; i < g.size(); ++i) g[i] += kDecay * p[i];
  if (options.exclude_bias_and_norm || Norm(p) == 0.0 || Norm(g) == 0.0) return g;
  const double rate = options.eta * Norm(p) / Norm(g);
  for (double& value : g) value *= rate;
  return g;
}

// Three steps of `optimizer`, whose gradients `transformed` computes, on ordinary parameters, one that is zero and one
// whose gradient is.
template <class Transformed>
void ExpectUpdates(Optimizer& optimizer, const Transformed& transformed) {
  std::vector<Values> p = {{1.0, -2.0, 0.5}, {0.0, 0.0}, {3.0, 4.0}};
  std::vector<Values> velocity = {{0, 0, 0}, {0, 0}, {0, 0}};
  ASSERT_OK(optimizer.Initialize({Group(p)}));
  for (int step = 0; step < 3; ++step) {
    const std::vector<Values> gradients = {{0.3 * step, -1.0, 2.0}, {0.5, step - 1.0}, {0.0, 0.0}};
    for (size_t i = 0; i < p.size(); ++i) {
      optimizer.groups()[0].parameters[i].mutable_grad() = at::tensor(gradients[i], at::kDouble);
    }

    optimizer.Step({});

    for (size_t i = 0; i < p.size(); ++i) {
      const Values g = transformed(p[i], gradients[i]);
      for (size_t k = 0; k < g.size(); ++k) {
        velocity[i][k] = kMomentum * velocity[i][k] + g[k];
        p[i][k] -= kRate * velocity[i][k];
        EXPECT_NEAR(optimizer.groups()[0].parameters[i][k].item<double>(), p[i][k], 1e-13) << i << " in step " << step;
      }
    }
  }
}

TEST(Larc, Updates_FollowTheFormula) {
  for (const LarcOptions& options :
       {LarcOptions{false, 1e-8, 0.001}, LarcOptions{true, 1e-3, 0.02}, LarcOptions{true, 1e-8, 5.0}}) {
    const auto larc = MakeLarc(options, *MakeSgd({kMomentum, false}));
    ExpectUpdates(*larc, [&](const Values& p, const Values& g) { return LarcGradient(options, p, g); });
  }
}

TEST(Larc, WeightDecayOfTheGroup_IsStillThereAfterAStep) {
  const auto larc = MakeLarc({}, *MakeSgd({}));
  ASSERT_OK(larc->Initialize({Group({{1.0}})}));
  larc->groups()[0].parameters[0].mutable_grad() = at::tensor(Values{1.0}, at::kDouble);

  larc->Step({});

  EXPECT_EQ(larc->groups()[0].weight_decay, kDecay);
}

TEST(Larc, State_IsTheInnerOptimizers) {
  const auto larc = MakeLarc({}, *MakeSgd({}));
  ASSERT_OK(larc->Initialize({Group({{1.0}})}));

  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*larc));

  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].name, "momentum/p0");
}

TEST(Larc, Config_SetsEverySetting) {
  TestRun run(ConfigNode::Map());
  const ConfigNode params =
      Yaml("{name: sgd, use_larc: true, momentum: 0.9, larc_config: {clip: true, eps: 0.5, trust_coefficient: 0.2}}");

  ASSERT_OK_AND_ASSIGN(const auto larc, MakeSgdFromConfig(params, run.context()));

  ExpectUpdates(*larc, [](const Values& p, const Values& g) { return LarcGradient({true, 0.5, 0.2}, p, g); });
}

TEST(Larc, OtherOptimizers_AreRefusedInsteadOfIgnored) {
  TestRun run(ConfigNode::Map());

  EXPECT_THAT(run.registries().optimizers.Make("adamw", Yaml("name: adamw\nuse_larc: true"), run.context()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.OPTIMIZER.use_larc is true and config.OPTIMIZER.name is 'adamw', "
                                 "expected 'sgd'")));
}

TEST(Lars, Updates_FollowTheFormula) {
  for (const LarsOptions& options : {LarsOptions{kMomentum, 0.001, false}, LarsOptions{kMomentum, 0.1, true}}) {
    const auto lars = MakeLars(options);
    ExpectUpdates(*lars, [&](const Values& p, const Values& g) { return LarsGradient(options, p, g); });
  }
}

TEST(Lars, ParametersOfTwoDimensions_AreAdaptedDespiteTheExclusion) {
  const auto lars = MakeLars({0.0, 0.001, true});
  ParameterGroup group = Group({{3.0, 4.0}});
  group.parameters[0] = at::tensor(Values{3.0, 4.0}, at::kDouble).reshape({1, 2}).set_requires_grad(true);
  group.weight_decay = 0.0;
  ASSERT_OK(lars->Initialize({group}));
  group.parameters[0].mutable_grad() = at::tensor(Values{0.0, 2.0}, at::kDouble).reshape({1, 2});

  lars->Step({});

  EXPECT_NEAR(group.parameters[0][0][1].item<double>(), 4.0 - kRate * 0.001 * 5.0, 1e-13);
}

TEST(Lars, Config_SetsEverySetting) {
  TestRun run(ConfigNode::Map());

  ASSERT_OK_AND_ASSIGN(const auto lars,
                       MakeLarsFromConfig(Yaml("{name: lars, momentum: 0.9, eta: 0.1}"), run.context()));

  ExpectUpdates(*lars, [](const Values& p, const Values& g) { return LarsGradient({kMomentum, 0.1, false}, p, g); });
}

}  // namespace
}  // namespace ssl
