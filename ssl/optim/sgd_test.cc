// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/sgd.h"

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

using ::testing::HasSubstr;

ParameterGroup OneParameter(const std::vector<double>& values) {
  ParameterGroup group;
  group.names = {"w"};
  group.parameters = {at::tensor(values, at::kDouble).set_requires_grad(true)};
  return group;
}

// The formula of the header, element by element.
struct NaiveSgd {
  SgdOptions options;
  double rate = 0.0;
  double decay = 0.0;
  std::vector<double> velocity;

  void Step(std::vector<double>* p, const std::vector<double>& grad) {
    velocity.resize(p->size(), 0.0);
    for (size_t i = 0; i < p->size(); ++i) {
      const double g = grad[i] + decay * (*p)[i];
      velocity[i] = options.momentum * velocity[i] + g;
      const double with_momentum = options.nesterov ? g + options.momentum * velocity[i] : velocity[i];
      (*p)[i] -= rate * (options.momentum == 0.0 ? g : with_momentum);
    }
  }
};

TEST(Sgd, Updates_FollowTheFormula) {
  for (const SgdOptions& options : {SgdOptions{0.0, false}, SgdOptions{0.9, false}, SgdOptions{0.5, true}}) {
    for (const double decay : {0.0, 0.1}) {
      SCOPED_TRACE(::testing::Message() << "momentum " << options.momentum << " decay " << decay);
      std::vector<double> expected = {1.0, -2.0, 0.5};
      ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(options));
      ASSERT_OK(sgd->Initialize({OneParameter(expected)}));
      NaiveSgd naive{options, 0.1, decay, {}};
      at::Tensor& parameter = sgd->groups()[0].parameters[0];
      for (int step = 0; step < 4; ++step) {
        const std::vector<double> grad = {0.3 * step, -1.0, 2.0 - step};
        parameter.mutable_grad() = at::tensor(grad, at::kDouble);
        sgd->groups()[0].learning_rate = naive.rate = 0.1 / (step + 1);
        sgd->groups()[0].weight_decay = decay;

        sgd->Step({});
        naive.Step(&expected, grad);

        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR(parameter[i].item<double>(), expected[i], 1e-14) << "step " << step;
        }
      }
    }
  }
}

TEST(Sgd, State_IsMomentumByParameterName) {
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd({}));
  ASSERT_OK(sgd->Initialize({OneParameter({1.0})}));

  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*sgd));

  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].name, "momentum/w");
}

TEST(Sgd, WithoutMomentum_HasNoState) {
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd({0.0, false}));
  ASSERT_OK(sgd->Initialize({OneParameter({1.0})}));

  EXPECT_TRUE(CollectState(*sgd)->empty());
}

TEST(Sgd, Config_SetsMomentum) {
  TestRun run(ConfigNode::Map());

  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgdFromConfig(Yaml("{name: sgd, momentum: 0}"), run.context()));

  ASSERT_OK(sgd->Initialize({OneParameter({1.0})}));
  EXPECT_TRUE(CollectState(*sgd)->empty());
}

TEST(Sgd, NesterovWithoutMomentum_IsRefusedWithItsPlace) {
  TestRun run(ConfigNode::Map());

  EXPECT_THAT(MakeSgdFromConfig(Yaml("{momentum: 0, nesterov: true}"), run.context()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.yaml:1: config.OPTIMIZER: momentum is 0")));
}

}  // namespace
}  // namespace ssl
