// SPDX-License-Identifier: Apache-2.0
//
// Cases named after detectron2 are those of its tests of BestCheckpointer.
#include "ssl/hooks/best_checkpoint_hook.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kAccuracy[] = "Testing/accuracy_top_1_Output_0";

BestCheckpointOptions Options(const std::string& mode, std::vector<std::string> metrics = {kAccuracy}) {
  BestCheckpointOptions options;
  options.metrics = std::move(metrics);
  options.mode = mode;
  return options;
}

// One test phase, 10 iterations after the one before.
absl::Status Evaluate(BestCheckpointHook& hook, FakeStep& step, double accuracy, double loss = 1.0) {
  step.state.training = false;
  step.state.iteration += 10;
  step.context.meter_reports = {{"accuracy", {{"top_1", "0", accuracy}}}, {"loss", {{"mean", "", loss}}}};
  return hook.OnPhaseEnd(step.context);
}

// The iterations that test phases with these values save.
std::vector<int64_t> SavesOf(const std::string& mode, const std::vector<double>& values) {
  FakeStep step;
  BestCheckpointHook hook(Options(mode));
  for (const double value : values) EXPECT_OK(Evaluate(hook, step, value));
  return step.saver.iterations;
}

TEST(BestCheckpointHook, Detectron2_BestSaves) {
  EXPECT_THAT(SavesOf("max", {0.3, 0.4, 0.35, 0.5}), ElementsAre(10, 20, 40));
  EXPECT_THAT(SavesOf("min", {1.0, 0.8, 0.9, 0.9}), ElementsAre(10, 20));
  EXPECT_THAT(SavesOf("min", {std::nan(""), 0.8, 0.9, 0.9}), ElementsAre(20));
}

TEST(BestCheckpointHook, InfinityIsNeverTheBest_NorAnEqualValueABetterOne) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(SavesOf("max", {0.3, infinity, 0.4, std::nan("")}), ElementsAre(10, 30));
  EXPECT_THAT(SavesOf("min", {-infinity, 0.3}), ElementsAre(20));
  EXPECT_THAT(SavesOf("max", {0.5, 0.5, 0.5}), ElementsAre(10));
  EXPECT_THAT(SavesOf("max", {-7.0, -8.0, -6.0}), ElementsAre(10, 30)) << "United Perception saves none below -1";
}

TEST(BestCheckpointHook, Auto_TakesLessOfALossAndMoreOfAllElse) {
  EXPECT_THAT(SavesOf("auto", {0.3, 0.2, 0.4}), ElementsAre(10, 30));
  FakeStep step;
  BestCheckpointHook hook((BestCheckpointOptions()));
  for (const double loss : {3.0, 2.0, 4.0}) ASSERT_OK(Evaluate(hook, step, 0.0, loss));
  EXPECT_THAT(step.saver.iterations, ElementsAre(10, 20)) << "Testing/loss_mean is the default";
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 20)));
}

TEST(BestCheckpointHook, SeveralMetrics_EachHaveTheirBest) {
  FakeStep step;
  BestCheckpointHook hook(Options("auto", {kAccuracy, "Testing/loss_mean"}));
  ASSERT_OK(Evaluate(hook, step, 0.5, 2.0));
  ASSERT_OK(Evaluate(hook, step, 0.4, 1.0));
  ASSERT_OK(Evaluate(hook, step, 0.4, 1.5));
  EXPECT_THAT(step.saver.names,
              ElementsAre(Pair("best.Testing_accuracy_top_1_Output_0", 10), Pair("best.Testing_loss_mean", 20)));
  hook.set_instance_name("second");
  ASSERT_OK(Evaluate(hook, step, 0.4, 0.5));
  EXPECT_EQ(step.saver.names["best.second.Testing_loss_mean"], 40);
}

TEST(BestCheckpointHook, OtherPhases_DoNotCountAndMissingValuesAreNamed) {
  FakeStep step;
  BestCheckpointHook hook(Options("max"));
  EXPECT_OK(hook.OnPhaseEnd(step.context)) << "a train phase";
  EXPECT_THAT(step.saver.iterations, IsEmpty());
  step.state.training = false;
  step.context.meter_reports = {{"accuracy", {{"top_5", "0", 1.0}}}};
  EXPECT_THAT(hook.OnPhaseEnd(step.context),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("config.HOOKS.BEST_CHECKPOINT.METRICS is 'Testing/accuracy_top_1_Output_0'"),
                             HasSubstr("did you mean 'Testing/accuracy_top_5_Output_0'"))));
}

TEST(BestCheckpointHook, Evaluations_CountWhereTheyAreAndAreMissedAtTheEnd) {
  FakeStep step;
  BestCheckpointHook hook(Options("auto", {"Evaluation/knn_top_1"}));
  ASSERT_OK(Evaluate(hook, step, 0.3));
  CapturedLog log;
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("no checkpoint is the best by 'Evaluation/knn_top_1'")));
  step.state.training = true;
  step.context.meter_reports = {{"knn", {{"top_1", "", 0.5}}, "Evaluation"}};
  ASSERT_OK(hook.OnPhaseEnd(step.context));
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 10)));
  EXPECT_THAT(log.warnings, SizeIs(1));
}

TEST(BestCheckpointHook, Restart_KeepsTheBestWhileItsCheckpointIsThere) {
  FakeStep step;
  BestCheckpointHook before(Options("max"));
  for (const double value : {0.3, 0.5, 0.4}) ASSERT_OK(Evaluate(before, step, value));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
  BestCheckpointHook after(Options("max"));
  ASSERT_OK(RestoreState(after, state, "test"));
  step.saver.names.clear();  // the process ended between the save and the name

  ASSERT_OK(after.OnStart(step.context));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 20)));
  ASSERT_OK(Evaluate(after, step, 0.45));
  ASSERT_OK(Evaluate(after, step, 0.6));
  EXPECT_THAT(step.saver.iterations, ElementsAre(10, 20, 50));

  BestCheckpointHook without(Options("max"));
  ASSERT_OK(RestoreState(without, state, "test"));
  step.saver.iterations.clear();
  step.saver.names.clear();
  CapturedLog log;
  ASSERT_OK(without.OnStart(step.context));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("the checkpoint of iteration 20, the best by")));
  ASSERT_OK(Evaluate(without, step, 0.1));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 60)));
}

// A file of a few bytes is no reason to give up what it stands for.
TEST(BestCheckpointHook, NameOfAnotherCheckpoint_IsGivenBackByTheState) {
  for (const int64_t wrong : {15, 25, 9999, -1}) {
    FakeStep step;
    BestCheckpointHook before(Options("max"));
    for (const double value : {0.5, 0.4, 0.3}) ASSERT_OK(Evaluate(before, step, value));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
    BestCheckpointHook after(Options("max"));
    ASSERT_OK(RestoreState(after, state, "test"));
    step.saver.names.erase("best");
    if (wrong > 0) step.saver.names["best"] = wrong;
    const CapturedLog log;
    ASSERT_OK(after.OnStart(step.context));
    EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 10))) << wrong;
    if (wrong > 0) {
      EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("best.step named iteration"))) << wrong;
    }
  }
}

// The checkpoint at the end of an epoch is saved before the test phase that makes it the best.
TEST(BestCheckpointHook, LaterCheckpoint_KeepsTheNameUntilItIsMeasuredAgain) {
  for (const double again : {0.7, 0.2}) {
    FakeStep step;
    BestCheckpointHook before(Options("max"));
    ASSERT_OK(Evaluate(before, step, 0.5));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
    ASSERT_OK(Evaluate(before, step, 0.7));
    BestCheckpointHook after(Options("max"));
    ASSERT_OK(RestoreState(after, state, "test"));

    ASSERT_OK(after.OnStart(step.context));
    EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 20)));

    ASSERT_OK(Evaluate(after, step, again));
    EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", again > 0.5 ? 30 : 10)));
  }
}

TEST(BestCheckpointHook, OtherMetrics_StartAnewWhileTheSameGoOn) {
  FakeStep step;
  BestCheckpointHook before(Options("auto", {kAccuracy}));
  ASSERT_OK(Evaluate(before, step, 0.5, 2.0));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(before));
  BestCheckpointHook after(Options("auto", {"Testing/loss_mean", kAccuracy}));
  ASSERT_OK(RestoreState(after, state, "test"));
  ASSERT_OK(Evaluate(after, step, 0.4, 3.0));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("best", 10), Pair("best.Testing_loss_mean", 20)));
}

TEST(BestCheckpointHook, FailedSave_IsReturnedAndNoFilesAreNoError) {
  FakeStep step;
  BestCheckpointHook hook(Options("max"));
  step.saver.result = absl::ResourceExhaustedError("disk is full");
  EXPECT_THAT(Evaluate(hook, step, 0.3), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk is full")));
  step.context.checkpoints = nullptr;
  EXPECT_OK(hook.OnStart(step.context));
  EXPECT_OK(Evaluate(hook, step, 0.4));
}

}  // namespace
}  // namespace ssl
