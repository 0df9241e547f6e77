// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/phase_metrics_hook.h"

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const MeterReport kLoss = {"loss", {{"mean", "", 2.5}}};
const MeterReport kAccuracy = {"accuracy_list_meter", {{"top_1", "0", 71.25}, {"top_5", "0", 90.5}}};

class PhaseMetricsHookTest : public ::testing::Test {
 protected:
  // Ends phase `phase` of the first epoch with `reports`.
  absl::Status EndPhase(FakeStep& step, PhaseMetricsHook& hook, int64_t phase, std::vector<MeterReport> reports) {
    step.state.phase_index = phase;
    step.state.train_phase_index = 0;
    step.state.training = phase == 0;
    step.state.iteration = 20;
    step.context.num_epochs = 2;
    step.context.meter_reports = std::move(reports);
    return hook.OnPhaseEnd(step.context);
  }

  std::string Content() { return PosixFileSystem().Read(path_).value_or("unreadable"); }

  const std::string path_ = MakeTempDir("phase_metrics") + "/metrics.json";
  PhaseMetricsHook hook_{PosixFileSystem(), path_};
  FakeStep step_;
};

TEST_F(PhaseMetricsHookTest, File_HasALineForEachPhaseAsVisslWritesIt) {
  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss, kAccuracy}));
  ASSERT_OK(EndPhase(step_, hook_, 1, {kAccuracy, {"accuracy_list_meter_ema", {{"top_1", "0", 72.0}}}}));

  EXPECT_EQ(Content(),
            "{\"iteration\":20,\"phase_idx\":0,\"train_phase_idx\":0,\"train_loss\":{\"mean\":2.5},"
            "\"train_accuracy_list_meter\":{\"top_1\":{\"0\":71.25},\"top_5\":{\"0\":90.5}}}\n"
            "{\"iteration\":20,\"phase_idx\":1,\"train_phase_idx\":0,"
            "\"test_accuracy_list_meter\":{\"top_1\":{\"0\":71.25},\"top_5\":{\"0\":90.5}},"
            "\"test_accuracy_list_meter_ema\":{\"top_1\":{\"0\":72.0}}}\n");
}

TEST_F(PhaseMetricsHookTest, ValuesOfOneOutput_AreAList) {
  const MeterReport report = {"mean_ap_list_meter",
                              {{"mAP", "res4", std::nan("")}, {"AP", "res4", 0.5}, {"AP", "res4", -1.0}}};

  ASSERT_OK(EndPhase(step_, hook_, 1, {report}));

  EXPECT_THAT(Content(),
              HasSubstr("\"test_mean_ap_list_meter\":{\"mAP\":{\"res4\":null},\"AP\":{\"res4\":[0.5,-1.0]}}"));
}

TEST_F(PhaseMetricsHookTest, ResumedRun_DropsWhatItMeasuresAgain) {
  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss}));
  ASSERT_OK(EndPhase(step_, hook_, 1, {{"accuracy_list_meter", {{"top_1", "0", 12.5}}}}));
  PhaseMetricsHook resumed(PosixFileSystem(), path_);

  ASSERT_OK(EndPhase(step_, resumed, 1, {{"accuracy_list_meter", {{"top_1", "0", 71.25}}}}));

  EXPECT_EQ(Content(),
            "{\"iteration\":20,\"phase_idx\":0,\"train_phase_idx\":0,\"train_loss\":{\"mean\":2.5}}\n"
            "{\"iteration\":20,\"phase_idx\":1,\"train_phase_idx\":0,"
            "\"test_accuracy_list_meter\":{\"top_1\":{\"0\":71.25}}}\n");
}

// A hook of the program's own reports at the ends of all phases.
TEST_F(PhaseMetricsHookTest, ResumedTestPhase_KeepsTheTrainPhaseThatHasTheSameValuesOfTheHost) {
  const MeterReport words = {"words", {{"seen", "", 7.0}}, "Host"};
  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss, words}));
  const std::string before = Content();
  PhaseMetricsHook resumed(PosixFileSystem(), path_);

  ASSERT_OK(EndPhase(step_, resumed, 1, {kLoss, words}));

  EXPECT_EQ(Content(), before +
                           "{\"iteration\":20,\"phase_idx\":1,\"train_phase_idx\":0,\"test_loss\":{\"mean\":2.5},"
                           "\"host_words\":{\"seen\":7.0}}\n");
}

// Without its test phases a run has smaller phase numbers than the lines before have.
TEST_F(PhaseMetricsHookTest, RunThatGoesOnWithOtherPhases_KeepsTheLinesOfItsUpdates) {
  ASSERT_OK(EndPhase(step_, hook_, 5, {kLoss}));
  const std::string before = Content();
  PhaseMetricsHook resumed(PosixFileSystem(), path_);
  step_.state.iteration = 40;
  step_.state.phase_index = 3;
  step_.context.meter_reports = {kLoss};

  ASSERT_OK(resumed.OnPhaseEnd(step_.context));

  EXPECT_THAT(Content(), ::testing::StartsWith(before));
  EXPECT_THAT(Content(), HasSubstr("{\"iteration\":40,\"phase_idx\":3,"));
}

TEST_F(PhaseMetricsHookTest, Sinks_GetWhatATestPhaseMeasured) {
  ASSERT_OK(
      EndPhase(step_, hook_, 1, {kLoss, kAccuracy, {"mean_ap_list_meter", {{"AP", "0", 0.5}, {"AP", "0", 1.0}}}}));

  ASSERT_THAT(step_.sink.reports, SizeIs(1));
  EXPECT_EQ(step_.sink.reports[0].iteration, 20);
  EXPECT_EQ(step_.sink.reports[0].epoch, 0);
  EXPECT_THAT(step_.sink.reports[0].values,
              ElementsAre(Pair("Testing/accuracy_list_meter_top_1_Output_0", 71.25),
                          Pair("Testing/accuracy_list_meter_top_5_Output_0", 90.5), Pair("Testing/loss_mean", 2.5)));
}

TEST_F(PhaseMetricsHookTest, Sinks_GetEveryTrainPhase) {
  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss}));
  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss, kAccuracy}));

  ASSERT_THAT(step_.sink.reports, SizeIs(2));
  EXPECT_THAT(step_.sink.reports[0].values, ElementsAre(Pair("Training/loss_mean", 2.5)));
  EXPECT_EQ(step_.sink.reports[1].values.at("Training/accuracy_list_meter_top_1_Output_0"), 71.25);
}

TEST_F(PhaseMetricsHookTest, ScopeOfAReport_IsWhatItsValuesAreOf) {
  CapturedLog log;
  const MeterReport evaluation = {"knn", {{"top_1", "", 80.0}}, "Evaluation"};

  ASSERT_OK(EndPhase(step_, hook_, 0, {kLoss, evaluation}));

  EXPECT_THAT(Content(), HasSubstr("\"train_loss\":{\"mean\":2.5},\"evaluation_knn\":{\"top_1\":80.0}}"));
  EXPECT_THAT(log.lines,
              ElementsAre("train | epoch 1/2 | loss | mean 2.5000", "evaluation | epoch 1/2 | knn | top_1 80.0000"));
  ASSERT_THAT(step_.sink.reports, SizeIs(1));
  EXPECT_THAT(step_.sink.reports[0].values,
              ElementsAre(Pair("Evaluation/knn_top_1", 80.0), Pair("Training/loss_mean", 2.5)));
}

TEST_F(PhaseMetricsHookTest, Lines_AreForPeople) {
  CapturedLog log;
  const MeterReport layers = {"accuracy_list_meter", {{"top_1", "res4", 50.0}, {"top_1", "res5", 60.0}}};
  const MeterReport precision = {"mean_ap_list_meter", {{"mAP", "0", 40.0}, {"AP", "0", 0.3}, {"AP", "0", 0.5}}};

  ASSERT_OK(EndPhase(step_, hook_, 1, {kLoss, kAccuracy, layers, precision}));

  EXPECT_THAT(log.lines, ElementsAre("test | epoch 1/2 | loss | mean 2.5000",
                                     "test | epoch 1/2 | accuracy_list_meter | top_1 71.2500 | top_5 90.5000",
                                     "test | epoch 1/2 | accuracy_list_meter | top_1 res4 50.0000, res5 60.0000",
                                     "test | epoch 1/2 | mean_ap_list_meter | mAP 40.0000"));
}

TEST_F(PhaseMetricsHookTest, RunWithoutFiles_WritesNone) {
  PhaseMetricsHook hook(PosixFileSystem(), "");

  ASSERT_OK(EndPhase(step_, hook, 1, {kAccuracy}));

  EXPECT_THAT(step_.sink.reports, SizeIs(1));
}

TEST_F(PhaseMetricsHookTest, FileThatCannotBeWritten_IsReported) {
  FaultFileSystem full(PosixFileSystem(), ParentDirectory(path_));
  full.FailCall(1, ENOSPC, FaultFileSystem::Repeat::kFromThenOn);
  PhaseMetricsHook hook(full, path_);

  EXPECT_THAT(EndPhase(step_, hook, 1, {kAccuracy}), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(PhaseMetricsHookTest, TwoRanks_WriteOnce) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(60));

  ASSERT_OK(world.Run([&](Communicator& communicator) {
    FakeStep step(communicator);
    PhaseMetricsHook hook(PosixFileSystem(), path_);
    return EndPhase(step, hook, 1, {});
  }));

  EXPECT_EQ(Content(), "{\"iteration\":20,\"phase_idx\":1,\"train_phase_idx\":0}\n");
  EXPECT_THAT(log.lines, IsEmpty());
}

}  // namespace
}  // namespace ssl
