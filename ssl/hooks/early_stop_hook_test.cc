// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/early_stop_hook.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/hooks/phase_values.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

EarlyStopOptions Options(const std::string& mode, int64_t patience, double min_delta = 0.0) {
  EarlyStopOptions options;
  options.metric = "Testing/accuracy_top_1_Output_0";
  options.mode = mode;
  options.patience = patience;
  options.min_delta = min_delta;
  return options;
}

// After how many test phases with these values the hook ends the run; 0 when it does not.
int PhasesUntilEnd(EarlyStopHook& hook, const std::vector<double>& values) {
  FakeStep step;
  step.state.training = false;
  for (size_t i = 0; i < values.size(); ++i) {
    step.state.iteration += 10;
    step.context.meter_reports = {{"accuracy", {{"top_1", "0", values[i]}}}};
    EXPECT_OK(hook.OnPhaseEnd(step.context));
    if (step.stop.requested()) {
      EXPECT_EQ(step.stop.reason(), kStopUser);
      return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

int PhasesUntilEnd(const EarlyStopOptions& options, const std::vector<double>& values) {
  EarlyStopHook hook(options);
  return PhasesUntilEnd(hook, values);
}

TEST(EarlyStopHook, Patience_CountsPhasesWithoutABetterValue) {
  EXPECT_EQ(PhasesUntilEnd(Options("max", 2), {10, 20, 20, 15, 30}), 4) << "an equal value is not better";
  EXPECT_EQ(PhasesUntilEnd(Options("max", 2), {10, 9, 11, 10, 12, 13}), 0);
  EXPECT_EQ(PhasesUntilEnd(Options("min", 1), {3, 2, 2.5}), 3);
  EXPECT_EQ(PhasesUntilEnd(Options("min", 3), {3, 4, 5}), 0);
}

TEST(EarlyStopHook, MinDelta_IsWhatABetterValueHasToGain) {
  EXPECT_EQ(PhasesUntilEnd(Options("max", 2, 0.5), {10, 10.25, 10.5, 12}), 3) << "the best stays 10";
  EXPECT_EQ(PhasesUntilEnd(Options("max", 2, 0.5), {10, 10.25, 10.75, 11, 11.5}), 0);
}

TEST(EarlyStopHook, ValuesThatAreNotFinite_AreNeverBetter) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PhasesUntilEnd(Options("max", 2), {infinity, std::nan(""), 5}), 2);
  EXPECT_EQ(PhasesUntilEnd(Options("min", 2), {1, -infinity, std::nan("")}), 3);
}

TEST(EarlyStopHook, OtherPhases_DoNotCountAndMissingValuesAreNamed) {
  EarlyStopHook hook(Options("max", 1));
  FakeStep step;
  EXPECT_OK(hook.OnPhaseEnd(step.context)) << "a train phase";
  step.state.training = false;
  step.context.meter_reports = {{"accuracy", {{"top_5", "0", 1.0}}}};
  EXPECT_THAT(hook.OnPhaseEnd(step.context),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("config.HOOKS.EARLY_STOP.METRIC is 'Testing/accuracy_top_1_Output_0'"),
                             HasSubstr("did you mean 'Testing/accuracy_top_5_Output_0'"))));
}

TEST(EarlyStopHook, Evaluations_CountInWhicheverPhaseTheyCome) {
  EarlyStopOptions options = Options("max", 2);
  options.metric = "Evaluation/knn_top_1";
  EarlyStopHook hook(options);
  FakeStep step;
  for (const double value : {50.0, 0.0, 49.0, 0.0, 48.0}) {
    EXPECT_FALSE(step.stop.requested());
    ++step.state.iteration;
    step.context.meter_reports = {{"knn", {{"top_1", "", value}}, "Evaluation"}};
    if (value == 0.0) step.context.meter_reports = {{"loss", {{"mean", "", 0.5}}}};  // a phase without one
    ASSERT_OK(hook.OnPhaseEnd(step.context));
  }
  EXPECT_TRUE(step.stop.requested());

  CapturedLog log;
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_THAT(log.warnings, ElementsAre());
  ASSERT_OK(EarlyStopHook(options).OnEnd(step.context));
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("'Evaluation/knn_top_1', which no evaluation has measured")));
}

TEST(EarlyStopHook, WhatAHookOfTheHostReports_CountsWhereItComesAndIsMissedAtTheEnd) {
  EarlyStopOptions options = Options("max", 1);
  options.metric = "Host/words_seen";
  EarlyStopHook hook(options);
  FakeStep step;
  ASSERT_OK(hook.OnPhaseEnd(step.context)) << "a phase without it";
  CapturedLog log;
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_THAT(log.warnings,
              ElementsAre(HasSubstr("is 'Host/words_seen', which no hook of the program's own has reported")));
  for (const double value : {5.0, 4.0}) {
    ++step.state.iteration;
    step.context.meter_reports = {{"words", {{"seen", "", value}}, "Host"}};
    ASSERT_OK(hook.OnPhaseEnd(step.context));
  }
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_THAT(log.warnings, SizeIs(1));
  EXPECT_TRUE(step.stop.requested());
}

TEST(EarlyStopHook, AResumedRun_GoesOnCountingAndOneThatHasEndedEndsAgain) {
  EarlyStopHook before(Options("max", 2));
  EXPECT_EQ(PhasesUntilEnd(before, {10, 9}), 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
  EarlyStopHook after(Options("max", 2));
  ASSERT_OK(RestoreState(after, state, "test"));

  EXPECT_EQ(PhasesUntilEnd(after, {9.5}), 1);

  FakeStep step;
  ASSERT_OK(after.OnStart(step.context));
  EXPECT_TRUE(step.stop.requested());
  EXPECT_THAT(step.context.end_reason,
              HasSubstr("has not been better than 10 for 2 phases; with a larger config.HOOKS.EARLY_STOP.PATIENCE"));

  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> ended, CollectFiniteState(after));
  EarlyStopHook less_patient(Options("max", 1));
  ASSERT_OK(RestoreState(less_patient, ended, "test"));
  FakeStep start;
  ASSERT_OK(less_patient.OnStart(start.context));
  EXPECT_THAT(start.context.end_reason, HasSubstr("has not been better than 10 for 1 phase; with a larger"));
}

// A train phase and its test phase end at one iteration, with a value each.
TEST(EarlyStopHook, TheEndsOfATrainAndOfATestPhase_CountBoth) {
  EarlyStopOptions options = Options("max", 1);
  options.metric = "Host/words_seen";
  EarlyStopHook hook(options);
  FakeStep step;
  step.context.meter_reports = {{"words", {{"seen", "", 7.0}}, "Host"}};
  ASSERT_OK(hook.OnPhaseEnd(step.context));
  EXPECT_FALSE(step.stop.requested());
  step.state.training = false;
  ASSERT_OK(hook.OnPhaseEnd(step.context));
  EXPECT_TRUE(step.stop.requested());
}

// config.CHECKPOINT.ALLOW_CHANGES lets them differ.
TEST(EarlyStopHook, ACountOfAnotherMetricOrMode_StartsAnew) {
  EarlyStopHook before(Options("max", 2));
  EXPECT_EQ(PhasesUntilEnd(before, {10, 9}), 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
  CapturedLog log;
  EarlyStopHook other_mode(Options("min", 2));
  ASSERT_OK(RestoreState(other_mode, state, "test"));
  EXPECT_EQ(PhasesUntilEnd(other_mode, {11, 12, 13}), 3) << "11 is the best so far, not 10";
  EarlyStopOptions of_top5 = Options("max", 2);
  of_top5.metric = "Testing/accuracy_top_5_Output_0";
  EarlyStopHook other_metric(of_top5);
  ASSERT_OK(RestoreState(other_metric, state, "test"));
  FakeStep step;
  step.state.training = false;
  step.state.iteration = 30;
  step.context.meter_reports = {{"accuracy", {{"top_5", "0", 5.0}}}};
  ASSERT_OK(other_metric.OnPhaseEnd(step.context));
  EXPECT_FALSE(step.stop.requested()) << "5 is the best so far, not 10, without which 9 was";
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("Testing/accuracy_top_1_Output_0 (max)"),
                                        HasSubstr("is Testing/accuracy_top_5_Output_0 (max)")));
}

TEST(PhaseValues, HaveTheNamesOfTheSinksAndNoLists) {
  FakeStep step;
  step.context.meter_reports = {{"loss", {{"mean", "", 0.5}}},
                                {"mean_ap", {{"ap", "res5", 1.0}, {"ap", "res5", 2.0}, {"ap", "res5", 3.0}}},
                                {"accuracy", {{"top_1", "res5", 70.0}}}};
  EXPECT_THAT(PhaseValues(step.context),
              ElementsAre(Pair("Training/accuracy_top_1_Output_res5", 70.0), Pair("Training/loss_mean", 0.5)));
}

}  // namespace
}  // namespace ssl
