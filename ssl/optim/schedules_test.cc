// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/schedules.h"

#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TestRun Run() { return TestRun(Yaml("OPTIMIZER: {num_epochs: 10}")); }

// The schedule that `yaml` describes; null, and a failed test, when it cannot be made.
std::unique_ptr<Schedule> Make(absl::string_view yaml) {
  TestRun run = Run();
  absl::StatusOr<std::unique_ptr<Schedule>> schedule = run.MakeSchedule(Yaml(yaml));
  EXPECT_OK(schedule);
  return schedule.ok() ? *std::move(schedule) : nullptr;
}

absl::Status ErrorOf(absl::string_view yaml) {
  TestRun run = Run();
  return run.MakeSchedule(Yaml(yaml)).status();
}

TEST(Schedules, Constant_IsTheValueEverywhere) {
  const auto schedule = Make("{name: constant, value: 0.3}");

  EXPECT_EQ(schedule->ValueAt(0.0), 0.3);
  EXPECT_EQ(schedule->ValueAt(0.999), 0.3);
}

TEST(Schedules, Linear_PassesThroughBothEndsAndTheMiddle) {
  const auto schedule = Make("{name: linear, start_value: 1, end_value: 3}");

  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.5), 2.0);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(1.0), 3.0);
}

TEST(Schedules, Cosine_FallsSlowlyAtBothEnds) {
  const auto schedule = Make("{name: cosine, start_value: 2, end_value: 1}");

  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.0), 2.0);
  EXPECT_NEAR(schedule->ValueAt(1.0 / 3.0), 1.75, 1e-12);
  EXPECT_NEAR(schedule->ValueAt(0.5), 1.5, 1e-12);
  EXPECT_NEAR(schedule->ValueAt(1.0), 1.0, 1e-12);
}

TEST(Schedules, Multistep_ChangesAtTheMilestoneItself) {
  const auto schedule = Make("{name: multistep, values: [4, 2, 1], milestones: [3, 6]}");

  EXPECT_EQ(schedule->ValueAt(0.2999), 4.0);
  EXPECT_EQ(schedule->ValueAt(0.3), 2.0);
  EXPECT_EQ(schedule->ValueAt(0.6), 1.0);
}

TEST(Schedules, Multistep_MissesNoMilestoneByRounding) {
  const auto schedule = Make("{name: multistep, values: [2, 1], milestones: [7]}");

  EXPECT_EQ(schedule->ValueAt(std::nextafter(0.7, 0.0)), 1.0);
}

TEST(Schedules, Step_DividesTrainingIntoEqualParts) {
  const auto schedule = Make("{name: step, values: [3, 2, 1]}");

  EXPECT_EQ(schedule->ValueAt(0.33), 3.0);
  EXPECT_EQ(schedule->ValueAt(0.34), 2.0);
  EXPECT_EQ(schedule->ValueAt(1.0), 1.0);
}

TEST(Schedules, StepWithFixedGamma_MultipliesFromPartToPart) {
  const auto schedule = Make("{name: step_with_fixed_gamma, base_value: 8, gamma: 0.5, num_decays: 3}");

  EXPECT_EQ(schedule->ValueAt(0.2), 8.0);
  EXPECT_EQ(schedule->ValueAt(0.25), 4.0);
  EXPECT_EQ(schedule->ValueAt(0.99), 1.0);
}

TEST(Schedules, Polynomial_FallsToZeroWithItsPower) {
  const auto schedule = Make("{name: polynomial, base_value: 2, power: 2}");

  EXPECT_EQ(schedule->ValueAt(0.0), 2.0);
  EXPECT_EQ(schedule->ValueAt(0.5), 0.5);
  EXPECT_EQ(schedule->ValueAt(1.0), 0.0);
}

TEST(Schedules, InverseSqrt_HasItsStartValueAtTheEndOfTheWarmUp) {
  const auto schedule = Make("{name: inverse_sqrt, start_value: 3, warmup_interval_length: 0.04}");

  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.04), 3.0);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.16), 1.5);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.0), 0.6);
}

TEST(Schedules, CosineWarmRestart_JumpsToLowerPeaks) {
  const auto schedule = Make(
      "{name: cosine_warm_restart, start_value: 1, end_value: 0, restart_interval_length: 0.25, lr_multiplier: 0.5}");

  EXPECT_NEAR(schedule->ValueAt(0.2499999), 0.0, 1e-9);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.25), 0.5);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.375), 0.25);
  EXPECT_DOUBLE_EQ(schedule->ValueAt(0.75), 0.125);
}

TEST(Schedules, CosineWarmRestart_FullWavesRiseToTheSchedulesOwnCosine) {
  const auto schedule = Make(
      "{name: cosine_warm_restart, start_value: 1, end_value: 0, restart_interval_length: 0.25, wave_type: full, "
      "is_adaptive: true}");

  EXPECT_NEAR(schedule->ValueAt(0.25), 0.0, 1e-12);
  EXPECT_NEAR(schedule->ValueAt(0.5), 0.5, 1e-12);
}

TEST(Schedules, Composite_BoundaryBelongsToTheLaterPart) {
  const auto schedule = Make(
      "{name: composite, lengths: [0.5, 0.5], schedulers: [{name: constant, value: 1}, {name: constant, value: 2}]}");

  EXPECT_EQ(schedule->ValueAt(0.4999), 1.0);
  EXPECT_EQ(schedule->ValueAt(0.5), 2.0);
}

TEST(Schedules, Composite_RescalesUnlessFixed) {
  const std::string parts =
      "schedulers: [{name: linear, start_value: 0, end_value: 1}, "
      "{name: linear, start_value: 0, end_value: 1}]}";
  const auto rescaled = Make("{name: composite, lengths: [0.2, 0.8], " + parts);
  const auto fixed = Make("{name: composite, lengths: [0.2, 0.8], interval_scaling: [rescaled, fixed], " + parts);

  EXPECT_NEAR(rescaled->ValueAt(0.1), 0.5, 1e-12);
  EXPECT_NEAR(rescaled->ValueAt(0.6), 0.5, 1e-12);
  EXPECT_NEAR(fixed->ValueAt(0.6), 0.6, 1e-12);
}

TEST(Schedules, Composite_MayHoldAComposite) {
  const auto schedule = Make(
      "{name: composite, lengths: [0.5, 0.5], schedulers: [{name: constant, value: 1}, {name: composite, lengths: "
      "[0.5, 0.5], schedulers: [{name: constant, value: 2}, {name: constant, value: 3}]}]}");

  EXPECT_EQ(schedule->ValueAt(0.7), 2.0);
  EXPECT_EQ(schedule->ValueAt(0.8), 3.0);
}

TEST(Schedules, UpdateInterval_IsTheOneGivenElseTheSchedulesOwn) {
  EXPECT_EQ(Make("{name: cosine}")->update_interval(), Schedule::UpdateInterval::kStep);
  EXPECT_EQ(Make("{name: cosine, update_interval: epoch}")->update_interval(), Schedule::UpdateInterval::kEpoch);
  EXPECT_EQ(Make("{name: constant}")->update_interval(), Schedule::UpdateInterval::kEpoch);
  EXPECT_EQ(Make("{name: constant, update_interval: step}")->update_interval(), Schedule::UpdateInterval::kStep);
}

TEST(Schedules, UnknownKey_NamesPlaceAndNearestKey) {
  EXPECT_THAT(ErrorOf("name: cosine\nstart_vale: 1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2"), HasSubstr("start_vale"), HasSubstr("start_value"))));
}

TEST(Schedules, WrongIntervalName_ListsTheRightOnes) {
  EXPECT_THAT(ErrorOf("{name: cosine, update_interval: steps}"),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("'steps'"), HasSubstr("'step', 'epoch'"))));
}

// A rate or a decay below 0 would let the loss grow.
TEST(Schedules, NegativeValues_AreRefused) {
  for (const char* key : {"value: -1}", "start_value: -1}", "end_value: -1}", "base_value: -1}", "values: [1, -1]}"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("{name: constant, ", key)),
                StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("-1"), HasSubstr("at least 0"))))
        << key;
  }
}

TEST(Schedules, MultistepCounts_MustFit) {
  EXPECT_THAT(ErrorOf("name: multistep\nvalues: [1, 2]\nmilestones: [3, 5]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: param_schedulers.values has 2 entries, expected 3")));
}

TEST(Schedules, MultistepMilestones_MustRise) {
  EXPECT_THAT(ErrorOf("{name: multistep, values: [3, 2, 1], milestones: [5, 5]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("milestones do not rise")));
}

TEST(Schedules, MultistepMilestones_MustLieBelowTheLastEpoch) {
  EXPECT_THAT(ErrorOf("{name: multistep, values: [2, 1], milestones: [10]}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("milestones reach epoch 10, expected epochs below config.OPTIMIZER.num_epochs 10")));
}

TEST(Schedules, MultistepWithoutEpochs_SaysWhatIsMissing) {
  TestRun run(Yaml("OPTIMIZER: {}"));

  EXPECT_THAT(run.MakeSchedule(Yaml("{name: multistep, values: [1], milestones: []}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.OPTIMIZER.num_epochs is missing")));
}

TEST(Schedules, StepWithoutValues_IsAnError) {
  EXPECT_THAT(ErrorOf("{name: step, values: []}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("param_schedulers.values is empty")));
}

TEST(Schedules, MissingLengths_AreNamed) {
  EXPECT_THAT(
      ErrorOf("name: cosine_warm_restart\nrestart_interval_length: 0"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("test.yaml:2: param_schedulers.restart_interval_length is 0, expected a value above")));
  EXPECT_THAT(ErrorOf("{name: step_with_fixed_gamma}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: param_schedulers.num_decays is 0, expected at least 1")));
}

TEST(Schedules, CompositeLengths_MustAddUpToOne) {
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [0.3], schedulers: [{name: constant}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lengths add up to 0.3, expected 1")));
}

TEST(Schedules, CompositeLists_MustBeAsLongAsSchedulers) {
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [0.5, 0.5], schedulers: [{name: constant}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lengths has 2 entries, expected one for each")));
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [1], interval_scaling: [fixed, fixed], schedulers: [{name: step}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("interval_scaling has 2 entries")));
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [1, 0], schedulers: [{name: constant}, {name: constant}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lengths has an entry that is not above 0")));
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [], schedulers: []}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("schedulers is empty")));
}

TEST(Schedules, CompositePart_IsCheckedLikeASchedule) {
  EXPECT_THAT(
      ErrorOf("name: composite\nlengths: [1]\nschedulers:\n- name: cosin\n"),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("test.yaml:4"), HasSubstr("did you mean 'cosine'"))));
  EXPECT_THAT(ErrorOf("name: composite\nlengths: [1]\nschedulers:\n- name: cosine\n  wave_typ: half\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:5"), HasSubstr("wave_typ"))));
  EXPECT_THAT(ErrorOf("{name: composite, lengths: [1], schedulers: [{value: 1}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("schedulers.0.name is missing")));
}

}  // namespace
}  // namespace ssl
