// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_clip_hook.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pointwise;

at::Tensor Vector(const std::vector<double>& values) { return at::tensor(values, at::kFloat); }

// A parameter with a gradient.
NamedParameter Parameter(const std::string& name, const std::vector<double>& gradient) {
  at::Tensor value = at::zeros({static_cast<int64_t>(gradient.size())}).set_requires_grad(true);
  value.mutable_grad() = Vector(gradient);
  return {name, value};
}

double MetricOf(FakeStep& step) {
  const auto report = step.metrics.Report(1, 0, step.context.communicator);
  EXPECT_OK(report);
  return report.ok() && report->values.count("Training/grad_norm") > 0 ? report->values.at("Training/grad_norm") : -1.0;
}

GradClipHook PreDefined(double max_norm) {
  GradClipRule rule;
  rule.max_norm = max_norm;
  return GradClipHook("grad_clip", rule);
}

TEST(GradClipHook, LargeGradients_AreScaledTogether) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 0.0}), Parameter("b", {4.0})};
  GradClipHook hook = PreDefined(0.5);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));
  ASSERT_OK(hook.OnStep(step.context));

  EXPECT_NEAR(step.model.parameters[0].value.grad()[0].item<double>(), 0.3, 1e-6);
  EXPECT_NEAR(step.model.parameters[1].value.grad()[0].item<double>(), 0.4, 1e-6);
  EXPECT_DOUBLE_EQ(MetricOf(step), 5.0);
}

TEST(GradClipHook, SmallGradients_StayBitForBit) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {0.3, 0.1}), Parameter("b", {-0.2})};
  const at::Tensor before = step.model.parameters[0].value.grad().clone();
  GradClipHook hook = PreDefined(1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));
  ASSERT_OK(hook.OnStep(step.context));

  EXPECT_TRUE(step.model.parameters[0].value.grad().equal(before));
}

TEST(GradClipHook, ParametersWithoutGradient_AreLeftAlone) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 4.0}), Parameter("frozen", {1.0})};
  step.model.parameters[1].value.mutable_grad().reset();
  GradClipHook hook = PreDefined(1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));
  ASSERT_OK(hook.OnStep(step.context));

  EXPECT_FALSE(step.model.parameters[1].value.grad().defined());
  EXPECT_DOUBLE_EQ(MetricOf(step), 5.0);
}

TEST(GradClipHook, SeveralOfARun_ReportUnderTheirOwnNames) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 4.0})};
  GradClipHook first = PreDefined(1.0);
  GradClipRule rule;
  rule.mode = GradClipMode::kAverage;
  rule.max_norm = 0.0;
  GradClipHook second("grad_clipper", rule);
  second.set_instance_name("second");
  for (GradClipHook* hook : {&first, &second}) {
    ASSERT_OK(hook->OnStart(step.context));
    ASSERT_OK(hook->OnBackward(step.context));
    ASSERT_OK(hook->OnStep(step.context));
  }
  ASSERT_OK_AND_ASSIGN(const auto report, step.metrics.Report(1, 0, step.context.communicator));
  EXPECT_NEAR(report.values.at("Training/grad_norm"), 5.0, 1e-6);
  EXPECT_NEAR(report.values.at("Training/second/grad_norm"), 1.0, 1e-4) << "what the first has left";
  EXPECT_NEAR(report.values.at("Training/second/grad_norm_limit"), 0.5, 1e-4);
  EXPECT_EQ(report.values.count("Training/grad_norm_limit"), 0u);
}

TEST(GradClipHook, NoGradients_AreNoMetric) {
  FakeStep step;
  GradClipHook hook = PreDefined(1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));
  ASSERT_OK(hook.OnStep(step.context));

  EXPECT_EQ(MetricOf(step), -1.0);
}

TEST(GradClipHook, NormOverShards_IsThatOfAllRanks) {
  const std::vector<at::Tensor> shards = {Vector({3.0, -1.0}), Vector({0.5, -7.0})};
  for (const double norm_type : {1.0, 2.0, 3.5, std::numeric_limits<double>::infinity()}) {
    const double expected = GradNorm(shards, norm_type).item<double>();
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
      const at::Tensor own = GradNorm({shards[static_cast<size_t>(communicator.rank())]}, norm_type);
      SSL_ASSIGN_OR_RETURN(const at::Tensor norm, NormOverShards(own, norm_type, communicator));
      EXPECT_NEAR(norm.item<double>(), expected, 1e-6 * expected) << norm_type << ", rank " << communicator.rank();
      return absl::OkStatus();
    }));
  }
}

TEST(GradClipHook, NormTypes) {
  EXPECT_EQ(*ParseNormType("2", "p"), 2.0);
  EXPECT_EQ(*ParseNormType("1.5", "p"), 1.5);
  EXPECT_EQ(*ParseNormType("inf", "p"), std::numeric_limits<double>::infinity());
  for (const char* text : {"0", "-1", "two", "", "nan"}) {
    EXPECT_THAT(
        ParseNormType(text, "run.yaml:3: NORM_TYPE"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat("run.yaml:3: NORM_TYPE is '", text, "'"))));
  }
}

// The limits for norms that are given one after the other.
std::vector<double> Limits(GradClipHook& hook, const std::vector<double>& norms) {
  std::vector<double> limits;
  for (const double norm : norms) limits.push_back(hook.NextLimit(at::full({}, norm, at::kDouble)).item<double>());
  return limits;
}

GradClipHook Following(GradClipMode mode, double tolerance, double momentum = 0.9, bool bias_correction = false) {
  GradClipRule rule;
  rule.mode = mode;
  rule.max_norm = 0.0;
  rule.tolerance = tolerance;
  rule.momentum = momentum;
  rule.bias_correction = bias_correction;
  return GradClipHook("grad_clipper", rule);
}

auto Near(const std::vector<double>& expected) { return Pointwise(DoubleNear(1e-6), expected); }

TEST(GradClipperLimits, AreThoseOfUnitedPerception) {
  const std::vector<double> constant(6, 4.0);
  GradClipHook average = Following(GradClipMode::kAverage, 1.0);
  EXPECT_THAT(Limits(average, constant), Near({2, 8.0 / 3, 3, 3.2, 10.0 / 3, 24.0 / 7}));
  GradClipHook loose = Following(GradClipMode::kAverage, 2.0);
  EXPECT_THAT(Limits(loose, constant), Near({4, 16.0 / 3, 6, 6.4, 20.0 / 3, 48.0 / 7}));
  GradClipHook outlier = Following(GradClipMode::kAverage, 2.0);
  EXPECT_THAT(Limits(outlier, {1, 2, 3, 4, 5, 60}), Near({1, 2, 3, 4, 5, 150.0 / 7}));
  GradClipHook moving = Following(GradClipMode::kMovingAverage, 5.0);
  EXPECT_THAT(Limits(moving, constant), Near({2, 3.8, 5.42, 6.878, 8.1902, 9.37118}));
}

TEST(GradClipperLimits, BiasCorrection_TakesTheFirstLimitOut) {
  GradClipHook average = Following(GradClipMode::kAverage, 1.0, 0.0, /*bias_correction=*/true);
  EXPECT_THAT(Limits(average, {4, 2, 3}), Near({4, 3, 3}));
  GradClipHook moving = Following(GradClipMode::kMovingAverage, 5.0, 0.9, /*bias_correction=*/true);
  EXPECT_THAT(Limits(moving, {4, 4, 4}), Near({20, 20, 20}));
}

TEST(GradClipperLimits, NormsThatAreNotFinite_DoNotCount) {
  GradClipHook hook = Following(GradClipMode::kAverage, 1.0);
  EXPECT_THAT(Limits(hook, {4, std::numeric_limits<double>::infinity(), std::nan(""), 4}), Near({2, 2, 2, 8.0 / 3}));
}

TEST(GradClipperLimits, GoOnAfterARestore) {
  const std::vector<double> norms = {3, 1, 4, 1, 5, 9};
  for (const GradClipMode mode : {GradClipMode::kAverage, GradClipMode::kMovingAverage}) {
    GradClipHook straight = Following(mode, 1.5);
    const std::vector<double> expected = Limits(straight, norms);
    GradClipHook before = Following(mode, 1.5);
    Limits(before, {norms.begin(), norms.begin() + 3});
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(before));
    GradClipHook after = Following(mode, 1.5);
    ASSERT_OK(RestoreState(after, state, "test"));
    EXPECT_THAT(Limits(after, {norms.begin() + 3, norms.end()}),
                ElementsAreArray(std::vector<double>(expected.begin() + 3, expected.end())));
  }
}

TEST(GradClipHook, SkippedUpdates_LeaveTheLimitAlone) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 4.0})};
  GradClipHook hook = Following(GradClipMode::kAverage, 1.0);
  ASSERT_OK(hook.OnStart(step.context));
  step.model.parameters[0].value.mutable_grad() = Vector({std::numeric_limits<double>::infinity(), 4.0});
  step.context.found_inf = at::full({}, 1.0, at::kFloat);
  ASSERT_OK(hook.OnBackward(step.context));
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(Limits(hook, {4.0}), Near({2.0})) << "the first that counts";
}

// Float16 gradients that overflow belong to no update: a window of the log has one soon, and its mean is that of
// others.
TEST(GradClipHook, SkippedUpdates_HaveNoNorm) {
  for (const GradClipMode mode : {GradClipMode::kPreDefined, GradClipMode::kAverage}) {
    FakeStep step;
    step.model.parameters = {Parameter("a", {3.0, 4.0})};
    GradClipHook hook = Following(mode, 1.0);
    ASSERT_OK(hook.OnStart(step.context));
    step.model.parameters[0].value.mutable_grad() = Vector({std::numeric_limits<double>::infinity(), 4.0});
    step.context.found_inf = at::full({}, 1.0, at::kFloat);
    ASSERT_OK(hook.OnBackward(step.context));
    ASSERT_OK(hook.OnStep(step.context));
    step.model.parameters[0].value.mutable_grad() = Vector({3.0, 4.0});
    step.context.found_inf.zero_();  // as the next update writes it
    ASSERT_OK(hook.OnBackward(step.context));
    ASSERT_OK(hook.OnStep(step.context));
    ASSERT_OK_AND_ASSIGN(const MetricReport report, step.metrics.Report(2, 0, step.context.communicator));
    EXPECT_FLOAT_EQ(report.values.at("Training/grad_norm"), 5.0);
  }
}

TEST(GradClipHook, DisplayFreq_TellsTheLimit) {
  CapturedLog log;
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 4.0})};
  GradClipRule rule;
  rule.mode = GradClipMode::kAverage;
  rule.max_norm = 0.0;
  rule.display_freq = 2;
  GradClipHook hook("grad_clipper", rule);
  ASSERT_OK(hook.OnStart(step.context));
  for (step.state.iteration = 0; step.state.iteration < 2;) {
    step.model.parameters[0].value.mutable_grad() = Vector({3.0, 4.0});
    ASSERT_OK(hook.OnBackward(step.context));
    ++step.state.iteration;
    ASSERT_OK(hook.OnStep(step.context));
  }
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("grad_clipper: update 2, limit 3.3333")));
}

std::vector<at::Tensor> Gradients(const golden::Step& step) {
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < step.inputs.size(); ++i) gradients.push_back(step.Input(absl::StrCat("g", i)).clone());
  return gradients;
}

void CheckClipGradNorm(const golden::Case& golden_case) {
  ASSERT_OK_AND_ASSIGN(const double norm_type, ParseNormType(golden_case.Text("norm_type"), "norm_type"));
  for (const golden::Step& step : golden_case.steps) {
    const std::vector<at::Tensor> gradients = Gradients(step);
    const at::Tensor norm = GradNorm(gradients, norm_type);
    ClipToNorm(gradients, norm, at::full({}, golden_case.Double("max_norm")));

    EXPECT_TRUE(golden::Matches(norm.item<double>(), step.Expected("norm")));
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(golden::Matches(gradients[i], step.Expected(absl::StrCat("clipped_g", i)))) << i;
    }
  }
}

GradClipRule RuleOf(const golden::Case& golden_case) {
  const std::map<std::string, GradClipMode> modes = {{"pre_defined", GradClipMode::kPreDefined},
                                                     {"average", GradClipMode::kAverage},
                                                     {"moving_average", GradClipMode::kMovingAverage}};
  GradClipRule rule;
  rule.mode = modes.at(golden_case.Text("mode"));
  if (golden_case.Has("norm_type")) rule.norm_type = ParseNormType(golden_case.Text("norm_type"), "p").value();
  rule.max_norm = golden_case.Double("max_norm", 0.0);
  rule.momentum = golden_case.Double("momentum", 0.0);
  rule.tolerance = golden_case.Double("tolerance", 1.0);
  return rule;
}

void CheckGradClipper(const golden::Case& golden_case) {
  GradClipHook hook("grad_clipper", RuleOf(golden_case));
  for (const golden::Step& step : golden_case.steps) {
    const std::vector<at::Tensor> gradients = Gradients(step);
    const at::Tensor norm = GradNorm(gradients, RuleOf(golden_case).norm_type);
    const at::Tensor limit = hook.NextLimit(norm);
    const double first = gradients[0].abs().max().item<double>();
    ClipToNorm(gradients, norm, limit);

    EXPECT_TRUE(golden::Matches(norm.item<double>(), step.Expected("norm")));
    EXPECT_TRUE(golden::Matches(limit.item<double>(), step.Expected("M")));
    EXPECT_NEAR(gradients[0].abs().max().item<double>() / first, step.Expected("coef").f64, 1e-6);
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(golden::Matches(gradients[i], step.Expected(absl::StrCat("clipped_g", i)))) << i;
    }
  }
}

TEST(GradClipGolden, NormsLimitsAndGradientsMatch) {
  golden::RunCategory("grad_clip", {{"clip_grad_norm", &CheckClipGradNorm}, {"up_grad_clipper", &CheckGradClipper}});
}

}  // namespace
}  // namespace ssl
