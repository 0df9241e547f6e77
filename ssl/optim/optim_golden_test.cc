// SPDX-License-Identifier: Apache-2.0
//
// Parameters after each of several updates against the optimizers of ClassyVision (torch), VISSL and apex, in float64
// and float32.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/optimizer.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// The parameters named in `no_grad` have no gradient in this step.
constexpr size_t kStepWithoutGradient = 1;

std::vector<ParameterGroup> MakeGroups(const golden::Case& golden_case, at::ScalarType dtype) {
  std::vector<ParameterGroup> groups(2);
  const ConfigNode* const weight_decay = golden_case.Param("optimizer").Find("weight_decay");
  groups[0].weight_decay = weight_decay == nullptr ? 0.0 : weight_decay->AsDouble().value_or(0.0);
  const std::vector<int64_t> group_of = golden_case.Ints("groups");
  for (size_t i = 0; i < group_of.size(); ++i) {
    const std::string name = absl::StrCat("p", i);
    ParameterGroup& group = groups[group_of[i] == 0 ? 0 : 1];
    group.names.push_back(name);
    group.parameters.push_back(golden_case.Input(name).to(dtype, false, /*copy=*/true).set_requires_grad(true));
  }
  return groups;
}

std::string NameOf(const golden::Case& golden_case) {
  const ConfigNode* const name = golden_case.Param("optimizer").Find("name");
  return name == nullptr ? "" : name->text();
}

double Tolerance(const golden::Output& expected, at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1e-8 * std::max(expected.absmax, 1.0);
  return std::max({1e-6 * expected.absmax, 16 * expected.f32_dev, 1e-7});
}

void CheckUpdates(const golden::Case& golden_case, at::ScalarType dtype) {
  TestRun run(ConfigNode::Map());
  const ConfigNode& settings = golden_case.Param("optimizer");
  ASSERT_OK_AND_ASSIGN(const auto schedule, run.MakeSchedule(golden_case.Param("lr_schedule")));
  ASSERT_OK_AND_ASSIGN(const auto optimizer,
                       run.registries().optimizers.Make(NameOf(golden_case), settings, run.context()));
  ASSERT_OK(optimizer->Initialize(MakeGroups(golden_case, dtype)));
  const std::vector<int64_t> no_grad = golden_case.Ints("no_grad");
  const int64_t num_steps = golden_case.Int("num_steps", static_cast<int64_t>(golden_case.steps.size()));

  for (size_t s = 0; s < golden_case.steps.size(); ++s) {
    const golden::Step& step = golden_case.steps[s];
    const double rate = schedule->ValueAt(static_cast<double>(s) / static_cast<double>(num_steps));
    EXPECT_NEAR(rate, step.Expected("lr").f64, 1e-12);
    for (ParameterGroup& group : optimizer->groups()) {
      group.learning_rate = rate;
      for (size_t i = 0; i < group.names.size(); ++i) {
        const int64_t position = std::stoll(group.names[i].substr(1));
        const bool skipped =
            s == kStepWithoutGradient && std::find(no_grad.begin(), no_grad.end(), position) != no_grad.end();
        group.parameters[i].mutable_grad() = skipped ? at::Tensor() : step.Input(absl::StrCat("g", position)).to(dtype);
      }
    }

    optimizer->Step({});

    for (const ParameterGroup& group : optimizer->groups()) {
      for (size_t i = 0; i < group.names.size(); ++i) {
        const golden::Output& expected = step.Expected(group.names[i]);
        const at::Tensor difference = group.parameters[i].detach().to(at::kDouble) - expected.tensor.to(at::kDouble);
        EXPECT_LE(at::max(at::abs(difference)).item<double>(), Tolerance(expected, dtype))
            << group.names[i] << " after step " << s << ", " << toString(dtype);
      }
    }
  }
}

void CheckBothTypes(const golden::Case& golden_case) {
  CheckUpdates(golden_case, at::kDouble);
  CheckUpdates(golden_case, at::kFloat);
}

TEST(OptimGolden, ParametersAfterEveryStepMatch) {
  golden::RunCategory("optim", {{"adam", &CheckBothTypes},
                                {"adamw", &CheckBothTypes},
                                {"lars", &CheckBothTypes},
                                {"rmsprop", &CheckBothTypes},
                                {"sgd", &CheckBothTypes},
                                {"sgd_larc", &CheckBothTypes}});
}

}  // namespace
}  // namespace ssl
