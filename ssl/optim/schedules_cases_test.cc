// SPDX-License-Identifier: Apache-2.0
//
// The numbers of detectron2's, LiBai's and fvcore's own tests of their schedules, from the schedules that say the same
// here. Steps are updates: step i of n asks for the value at i / n. Their warm-up is the first part of a composite.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/schedules.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kPi = 3.14159265358979323846;

// Values at the first `steps` of `total` steps. Epochs, of which milestones are, are steps.
std::vector<double> Values(const std::string& yaml, int steps, int total) {
  TestRun run(Yaml(absl::StrCat("OPTIMIZER: {num_epochs: ", total, "}")));
  absl::StatusOr<std::unique_ptr<Schedule>> schedule = run.MakeSchedule(Yaml(yaml));
  EXPECT_OK(schedule);
  std::vector<double> values;
  for (int step = 0; schedule.ok() && step < steps; ++step) {
    values.push_back((*schedule)->ValueAt(static_cast<double>(step) / total));
  }
  return values;
}

// Five steps of linear warm-up from 0.005 to `target`, then `rest`, of 30 steps in all.
std::vector<double> WarmedUp(double target, const std::string& rest, const std::string& scaling) {
  return Values(
      absl::StrCat("{name: composite, schedulers: [{name: linear, start_value: 0.005, end_value: ", target, "}, ", rest,
                   "], lengths: [", 5.0 / 30, ", ", 25.0 / 30, "], interval_scaling: [rescaled, ", scaling, "]}"),
      30, 30);
}

std::vector<double> Constant(int count, double value) { return std::vector<double>(count, value); }

std::vector<double> Joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const std::vector<double>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const std::vector<double> kWarmUpToFive = {0.005, 1.004, 2.003, 3.002, 4.001};

TEST(ScheduleCases, Case19_WarmUpMultistep) {
  const std::vector<double> values =
      WarmedUp(5, "{name: multistep, values: [5, 0.5, 0.05, 0.005], milestones: [10, 15, 20]}", "fixed");
  EXPECT_THAT(values, Pointwise(DoubleNear(1e-5), Joined({kWarmUpToFive, Constant(5, 5.0), Constant(5, 0.5),
                                                          Constant(5, 0.05), Constant(10, 0.005)})));
}

TEST(ScheduleCases, Case20_WarmUpCosineAimsAtTheCosine) {
  const double target = 2.5 * (1 + std::cos(kPi * 5 / 30));
  const std::vector<double> values = WarmedUp(target, "{name: cosine, start_value: 5, end_value: 0}", "fixed");
  ASSERT_EQ(values.size(), 30);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(values[i], 0.005 + (target - 0.005) * i / 5, 1e-4) << i;
  for (int i = 5; i < 30; ++i) EXPECT_NEAR(values[i], 2.5 * (1 + std::cos(kPi * i / 30)), 1e-9) << i;
}

TEST(ScheduleCases, Case21_EndValueIsReached) {
  for (const double end : {0.0, 0.5}) {
    const std::string yaml = absl::StrCat(
        "{name: composite, schedulers: [{name: linear, start_value: 0.5, end_value: 5}, {name: cosine, start_value: 5, "
        "end_value: ",
        end, "}], lengths: [0.1, 0.9], interval_scaling: [rescaled, fixed]}");
    EXPECT_NEAR(Values(yaml, 101, 100).back(), end, 1e-9);
  }
}

TEST(ScheduleCases, Case22_FixedGammaRescaled) {
  const std::vector<double> values =
      WarmedUp(5, "{name: step_with_fixed_gamma, base_value: 5, gamma: 0.1, num_decays: 4}", "rescaled");
  EXPECT_THAT(values,
              Pointwise(DoubleNear(1e-5), Joined({kWarmUpToFive, Constant(5, 5.0), Constant(5, 0.5), Constant(5, 0.05),
                                                  Constant(5, 0.005), Constant(5, 0.0005)})));
}

// There one step past the end is an error; here training asks for no such value, and the last one stays.
TEST(ScheduleCases, Case22_PastTheEnd) {
  EXPECT_NEAR(Values("{name: step_with_fixed_gamma, base_value: 5, gamma: 0.1, num_decays: 4}", 32, 30).back(), 0.0005,
              1e-12);
}

// The warm-up aims at the value that the exponential has when it takes over.
TEST(ScheduleCases, Case23_WarmUpExponential) {
  const std::vector<double> values = WarmedUp(5e-5, "{name: exponential, start_value: 5, decay: 1e-30}", "fixed");
  ASSERT_EQ(values.size(), 30);
  const std::vector<double> warm_up = {0.005, 0.00401, 0.00302, 0.00203, 0.00104};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(values[i], warm_up[i], 1e-8) << "lengths of a composite are rounded, " << i;
  for (int i = 5; i < 30; ++i) {
    const double expected = 5 * std::pow(0.1, i);
    EXPECT_NEAR(values[i], expected, 1e-9 * expected) << i;
  }
}

TEST(ScheduleCases, Case23_WarmUpSteps) {
  const std::vector<double> values =
      WarmedUp(5, "{name: multistep, values: [5, 0.5, 0.05], milestones: [10, 20]}", "fixed");
  EXPECT_THAT(values, Pointwise(DoubleNear(1e-5),
                                Joined({kWarmUpToFive, Constant(5, 5.0), Constant(10, 0.5), Constant(10, 0.05)})));
}

TEST(ScheduleCases, Case24_CompositeOfConstants) {
  EXPECT_THAT(Values("{name: composite, lengths: [0.2, 0.4, 0.1, 0.3], schedulers: [{name: constant, value: 0.1}, "
                     "{name: constant, value: 0.2}, {name: constant, value: 0.3}, {name: constant, value: 0.4}], "
                     "interval_scaling: [rescaled, rescaled, rescaled, rescaled]}",
                     10, 10),
              Pointwise(DoubleNear(1e-12), {0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4}));
}

TEST(ScheduleCases, Case24_Cosine) {
  EXPECT_THAT(Values("{name: cosine, start_value: 0.1, end_value: 0}", 10, 10),
              Pointwise(DoubleNear(5e-5), {0.1, 0.0976, 0.0905, 0.0794, 0.0655, 0.05, 0.0345, 0.0206, 0.0095, 0.0024}));
}

TEST(ScheduleCases, Case24_Exponential) {
  EXPECT_THAT(
      Values("{name: exponential, start_value: 2, decay: 0.1}", 10, 10),
      Pointwise(DoubleNear(5e-5), {2.0, 1.5887, 1.2619, 1.0024, 0.7962, 0.6325, 0.5024, 0.3991, 0.3170, 0.2518}));
}

TEST(ScheduleCases, Case24_Polynomial) {
  EXPECT_THAT(Values("{name: polynomial, base_value: 0.1, power: 1}", 10, 10),
              Pointwise(DoubleNear(1e-12), {0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01}));
}

TEST(ScheduleCases, Case24_Multistep) {
  EXPECT_THAT(Values("{name: multistep, values: [0.1, 0.01, 0.001, 0.0001], milestones: [4, 6, 8]}", 12, 12),
              Pointwise(DoubleNear(1e-12),
                        Joined({Constant(4, 0.1), Constant(2, 0.01), Constant(2, 0.001), Constant(4, 0.0001)})));
}

TEST(ScheduleCases, Case24_LengthsMustAddUpToOne) {
  const auto status = [](double second) {
    TestRun run(Yaml("OPTIMIZER: {num_epochs: 10}"));
    return run
        .MakeSchedule(Yaml(absl::StrCat("{name: composite, schedulers: [{name: constant}, {name: constant}], lengths: "
                                        "[0.7, ",
                                        second, "], interval_scaling: [fixed, fixed]}")))
        .status();
  };
  EXPECT_OK(status(0.2999));
  EXPECT_THAT(status(0.2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lengths")));
}

}  // namespace
}  // namespace ssl
