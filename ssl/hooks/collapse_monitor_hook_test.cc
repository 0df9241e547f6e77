// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/collapse_monitor_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/models/layers.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

at::Tensor Normal(int64_t rows, int64_t columns) {
  return at::randn({rows, columns}, MakeGenerator(7), at::TensorOptions().dtype(at::kFloat));
}

TEST(CollapseStatisticsTest, Spread_IsOneOnTheSphereAndZeroAtAPoint) {
  EXPECT_NEAR(FeatureSpread(Normal(1000, 64)), 1.0, 0.02);
  EXPECT_NEAR(FeatureSpread(Normal(1000, 64) * 50.0), 1.0, 0.02) << "lengths do not matter";
  EXPECT_NEAR(FeatureSpread(at::ones({100, 64})), 0.0, 1e-6);
  EXPECT_NEAR(FeatureSpread(at::zeros({100, 64})), 0.0, 1e-6);
}

TEST(CollapseStatisticsTest, Rank_IsTheEntropyOfSingularValues) {
  EXPECT_NEAR(EffectiveRank(at::eye(16)), 16.0, 1e-6);
  EXPECT_NEAR(EffectiveRank(at::ones({40, 16})), 1.0, 1e-5);
  const at::Tensor plane = at::matmul(Normal(200, 2), Normal(2, 32));
  EXPECT_LE(EffectiveRank(plane), 2.0 + 1e-4);
  for (const at::Tensor& features : {Normal(50, 20), Normal(20, 50)}) {
    const at::Tensor values = std::get<1>(at::linalg_svd(features.to(at::kDouble), /*full_matrices=*/false));
    const at::Tensor shares = values / values.sum();
    EXPECT_NEAR(EffectiveRank(features), std::exp(-(shares * shares.log()).sum().item<double>()), 1e-4);
  }
}

TEST(CollapseStatisticsTest, Usage_IsTheEntropyOfTheNearest) {
  EXPECT_NEAR(PrototypeUsage(at::eye(8)), 1.0, 1e-6);
  EXPECT_NEAR(PrototypeUsage(at::cat({at::eye(4), at::eye(4)}, 0)), 1.0, 1e-6);
  EXPECT_NEAR(PrototypeUsage(at::eye(100).narrow(0, 0, 5)), 1.0, 1e-6) << "five samples use five prototypes";
  at::Tensor one = at::zeros({50, 10});
  one.select(1, 3).fill_(1.0);
  EXPECT_NEAR(PrototypeUsage(one), 0.0, 1e-6);
  at::Tensor two = one.clone();
  two.narrow(0, 0, 25).select(1, 7).fill_(2.0);
  EXPECT_NEAR(PrototypeUsage(two), std::log(2.0) / std::log(10.0), 1e-6);
}

class CollapseMonitorHookTest : public ::testing::Test {
 protected:
  CollapseMonitorHookTest() {
    options_.monitors = true;
    options_.frequency = 10;
  }

  void Steps(CollapseMonitorHook* hook, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_OK(hook->OnLossAndMeter(step_.context));
      ++step_.state.iteration;
    }
  }

  std::map<std::string, double> Reported() {
    return step_.metrics.Report(step_.state.iteration, 0, step_.context.communicator)->values;
  }

  CollapseMonitorOptions options_;
  FakeStep step_;
  CapturedLog log_;
};

TEST_F(CollapseMonitorHookTest, Collapse_IsWarnedAboutOnce) {
  CollapseMonitorHook hook(options_);
  step_.context.outputs = {at::ones({32, 16})};
  Steps(&hook, 9);
  EXPECT_THAT(Reported(), IsEmpty()) << "the first look is at the tenth update";
  Steps(&hook, 20);
  EXPECT_THAT(log_.warnings, IsEmpty()) << "two looks";
  Steps(&hook, 100);
  EXPECT_THAT(log_.warnings, ElementsAre(AllOf(HasSubstr("nearly one"), HasSubstr("param_schedulers.lr")),
                                         HasSubstr("1.0 of 16 dimensions")));
  EXPECT_THAT(Reported(), UnorderedElementsAre(Key("Training/feature_spread"), Key("Training/effective_rank")));
}

TEST_F(CollapseMonitorHookTest, Recovery_IsNoWarningUntilTheNextCollapse) {
  CollapseMonitorHook hook(options_);
  for (int i = 0; i < 4; ++i) {
    step_.context.outputs = {at::ones({32, 16})};
    Steps(&hook, 20);
    step_.context.outputs = {Normal(32, 16)};
    Steps(&hook, 10);
  }
  EXPECT_THAT(log_.warnings, IsEmpty());
}

TEST_F(CollapseMonitorHookTest, Prototypes_AndALossOfEvenScores) {
  CollapseMonitorHook hook(options_);
  at::Tensor scores = at::zeros({32, 20});
  scores.select(1, 3).fill_(1e-3);
  step_.context.outputs = {Normal(32, 16), scores};
  step_.context.loss = at::full({}, std::log(20.0));
  Steps(&hook, 30);
  EXPECT_THAT(log_.warnings, ElementsAre(AllOf(HasSubstr("prototype_usage 0.000"), HasSubstr("epsilon")),
                                         AllOf(HasSubstr("stays at 2.996"), HasSubstr("20 prototypes"))));
}

// check_nan looks at the loss after it; without check_nan, and in an update that float16 skips, the run goes on.
TEST_F(CollapseMonitorHookTest, FeaturesThatAreNotFinite_EndNoRun) {
  CollapseMonitorHook hook(options_);
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    at::Tensor features = Normal(32, 16);
    features[3][5] = wrong;
    step_.context.outputs = {features};
    Steps(&hook, 10);
    EXPECT_THAT(Reported(), UnorderedElementsAre(Pair("Training/feature_spread", IsNan()),
                                                 Pair("Training/effective_rank", IsNan())))
        << "the names that other ranks report";
  }
  EXPECT_THAT(log_.warnings, IsEmpty());
}

TEST_F(CollapseMonitorHookTest, OtherOutputs_AreLeftAlone) {
  CollapseMonitorHook hook(options_);
  for (const std::vector<at::Tensor>& outputs :
       {std::vector<at::Tensor>{}, {at::ones({4, 3, 2, 2})}, {at::ones({1, 8})}, {Normal(8, 4), at::ones({5, 3})}}) {
    step_.context.outputs = outputs;
    Steps(&hook, 10);
  }
  Reported();
  step_.state.training = false;
  step_.context.outputs = {at::ones({32, 16})};
  Steps(&hook, 50);
  EXPECT_THAT(log_.warnings, IsEmpty());
  EXPECT_THAT(Reported(), IsEmpty());
}

}  // namespace
}  // namespace ssl
