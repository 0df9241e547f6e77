// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_clip_hook.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

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

TEST(GradClipHook, LargeGradients_AreScaledTogether) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 0.0}), Parameter("b", {4.0})};
  GradClipHook hook(/*norm_type=*/2.0, /*max_norm=*/0.5);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));

  EXPECT_NEAR(step.model.parameters[0].value.grad()[0].item<double>(), 0.3, 1e-6);
  EXPECT_NEAR(step.model.parameters[1].value.grad()[0].item<double>(), 0.4, 1e-6);
  EXPECT_DOUBLE_EQ(MetricOf(step), 5.0);
}

TEST(GradClipHook, SmallGradients_StayBitForBit) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {0.3, 0.1}), Parameter("b", {-0.2})};
  const at::Tensor before = step.model.parameters[0].value.grad().clone();
  GradClipHook hook(/*norm_type=*/2.0, /*max_norm=*/1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));

  EXPECT_TRUE(step.model.parameters[0].value.grad().equal(before));
}

TEST(GradClipHook, ParametersWithoutGradient_AreLeftAlone) {
  FakeStep step;
  step.model.parameters = {Parameter("a", {3.0, 4.0}), Parameter("frozen", {1.0})};
  step.model.parameters[1].value.mutable_grad().reset();
  GradClipHook hook(/*norm_type=*/2.0, /*max_norm=*/1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));

  EXPECT_FALSE(step.model.parameters[1].value.grad().defined());
  EXPECT_DOUBLE_EQ(MetricOf(step), 5.0);
}

TEST(GradClipHook, NoGradients_AreNoMetric) {
  FakeStep step;
  GradClipHook hook(/*norm_type=*/2.0, /*max_norm=*/1.0);
  ASSERT_OK(hook.OnStart(step.context));

  ASSERT_OK(hook.OnBackward(step.context));

  EXPECT_EQ(MetricOf(step), -1.0);
}

TEST(GradClipHook, NormTypes) {
  EXPECT_EQ(*ParseNormType("2"), 2.0);
  EXPECT_EQ(*ParseNormType("1.5"), 1.5);
  EXPECT_EQ(*ParseNormType("inf"), std::numeric_limits<double>::infinity());
  for (const char* text : {"0", "-1", "two", "", "nan"}) {
    EXPECT_THAT(ParseNormType(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("config.MODEL.GRAD_CLIP.NORM_TYPE is '", text, "'"))));
  }
}

void CheckClipGradNorm(const golden::Case& golden_case) {
  ASSERT_OK_AND_ASSIGN(const double norm_type, ParseNormType(golden_case.Text("norm_type")));
  for (const golden::Step& step : golden_case.steps) {
    std::vector<at::Tensor> gradients;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      gradients.push_back(step.Input(absl::StrCat("g", i)).clone());
    }

    const at::Tensor norm = ClipGradNorm(gradients, norm_type, golden_case.Double("max_norm"));

    EXPECT_TRUE(golden::Matches(norm.item<double>(), step.Expected("norm")));
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(golden::Matches(gradients[i], step.Expected(absl::StrCat("clipped_g", i)))) << i;
    }
  }
}

TEST(GradClipGolden, NormsAndGradientsMatch) {
  golden::RunCategory("grad_clip", {{"clip_grad_norm", &CheckClipGradNorm}}, /*out_of_scope=*/{"up_grad_clipper"});
}

}  // namespace
}  // namespace ssl
