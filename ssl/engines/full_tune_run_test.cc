// SPDX-License-Identifier: Apache-2.0
//
// Fine-tuning as a whole, with the real parts: a small ResNet, synthetic pictures, two epochs.
#include <atomic>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/model.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using FullTuneRunTest = FullTuneRun;

TEST_F(FullTuneRunTest, TrainsANewHeadAndMeasuresEachEpoch) {
  SaveCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run());
  EXPECT_FALSE(report.stopped);
  EXPECT_THAT(report.summary, HasSubstr("fine-tuning of 4 classes"));
  EXPECT_THAT(report.summary, HasSubstr("\n2 "));
  ASSERT_NE(results_.FindPath("full_tune.iteration"), nullptr);
  EXPECT_EQ(results_.FindPath("full_tune.iteration")->text(), "7");
  EXPECT_GE(results_.FindPath("full_tune.best_top1")->AsDouble().value(),
            results_.FindPath("full_tune.top1")->AsDouble().value());
  // 48 samples in batches of 16, twice.
  EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/step_6"));
  EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/checkpoints/step_7"));
  EXPECT_FALSE(PosixFileSystem().IsDirectory(directory_ + "/checkpoints/step_6"));
}

// Equal global batches: BATCH_SIZE is each rank's. 18 test samples are 5 for each of 4 ranks, of which two have one
// that another one has as well.
TEST_F(FullTuneRunTest, OnSeveralRanks_TheTableIsTheSame) {
  config_.SetPath("MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN", ConfigNode::FromBool(true));
  config_.SetPath("MODEL.SYNC_BN_CONFIG.GROUP_SIZE", ConfigNode::FromInt(0));
  for (const int64_t samples : {20, 18}) {
    config_.SetPath("DATA.TEST.DATA_LIMIT", ConfigNode::FromInt(samples));
    std::string table;
    for (const int64_t ranks : {1, 2, 4}) {
      directory_ = MakeTempDir("full_tune");
      SaveCheckpoint();
      config_.SetPath("FULL_TUNE.BATCH_SIZE", ConfigNode::FromInt(16 / ranks));
      EXPECT_OK(RunOnRanks(ranks, [&](const EngineReport& report) {
        const std::string found = report.summary.substr(report.summary.find('\n'));  // the first line has the directory
        if (ranks == 1) table = found;
        EXPECT_EQ(found, table) << samples << " samples on " << ranks << " ranks";
      }));
    }
    EXPECT_THAT(table, HasSubstr("\n2 "));
  }
}

TEST_F(FullTuneRunTest, FewLabels_AreDrawnFromEachClass) {
  SaveCheckpoint();
  config_.SetPath("FULL_TUNE.DATA_LIMIT", ConfigNode::FromInt(8));
  ASSERT_OK(Run().status());
  EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/step_2"));
}

TEST_F(FullTuneRunTest, FinishedRun_ShowsItsTableAgain) {
  SaveCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport first, Run());
  results_ = ConfigNode::Map();
  ASSERT_OK_AND_ASSIGN(const EngineReport second, Run());
  EXPECT_EQ(second.summary, first.summary);
}

TEST_F(FullTuneRunTest, LaterWeights_AreNotReportedByTheirPredecessorsTuning) {
  SaveCheckpoint(7);
  ASSERT_OK(Run().status());
  SaveCheckpoint(9, 1);
  results_ = ConfigNode::Map();
  EXPECT_THAT(Run().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("initial_weights: \"checkpoint of iteration 7, crc32c:"),
                             HasSubstr("in the checkpoint, \"checkpoint of iteration 9, crc32c:"),
                             HasSubstr("engine_name=full_tune with config.CHECKPOINT.OVERWRITE_EXISTING=True"))));
  EXPECT_TRUE(results_.entries().empty());
  config_.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  ASSERT_OK(Run().status());
  EXPECT_NE(results_.FindPath("full_tune.top1"), nullptr);
  // The command of that start goes on, and so does the one without.
  EXPECT_OK(Run().status());
  config_.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(false));
  EXPECT_OK(Run().status());
}

TEST_F(FullTuneRunTest, OtherWeightsOfTheSameIteration_AreOtherWeights) {
  SaveCheckpoint(7);
  ASSERT_OK(Run().status());
  SaveCheckpoint(7, 1);
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"MODEL", "OPTIMIZER"}));
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("initial_weights")));
}

TEST_F(FullTuneRunTest, MovedRun_GoesOn) {
  SaveCheckpoint(7);
  ASSERT_OK_AND_ASSIGN(const EngineReport first, Run());
  const std::string elsewhere = directory_ + "_elsewhere";
  ASSERT_OK(PosixFileSystem().Rename(directory_, elsewhere));
  directory_ = elsewhere;
  ASSERT_OK_AND_ASSIGN(const EngineReport second, Run());
  EXPECT_THAT(second.summary, HasSubstr("\n2 "));
}

TEST_F(FullTuneRunTest, MovedFileOfWeights_IsTheSame) {
  SaveCheckpoint(7);
  const std::string first = directory_ + "/first.safetensors";
  const std::string second = directory_ + "/second.safetensors";
  ASSERT_OK(PosixFileSystem().Rename(directory_ + "/checkpoints/step_7/model.safetensors", first));
  ASSERT_OK(PosixFileSystem().RemoveAll(directory_ + "/checkpoints"));
  config_.SetPath("MODEL.WEIGHTS_INIT.PARAMS_FILE", ConfigNode::FromString(first));
  ASSERT_OK(Run().status());
  ASSERT_OK(PosixFileSystem().Rename(first, second));
  config_.SetPath("MODEL.WEIGHTS_INIT.PARAMS_FILE", ConfigNode::FromString(second));
  EXPECT_OK(Run().status());
}

TEST_F(FullTuneRunTest, AutoResume_IsThatOfTheFineTuning) {
  SaveCheckpoint();
  config_.SetPath("CHECKPOINT.AUTO_RESUME", ConfigNode::FromBool(false));
  ASSERT_OK(Run().status()) << "the run's own checkpoints are read, not resumed";
  EXPECT_THAT(Run().status(),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("CHECKPOINT.AUTO_RESUME is false"),
                                                                 HasSubstr("/full_tune/checkpoints/step_6"))));
}

TEST_F(FullTuneRunTest, AllowChanges_IsThatOfTheFineTuning) {
  SaveCheckpoint();
  ASSERT_OK(Run().status());
  config_.SetPath("FULL_TUNE.NUM_EPOCHS", ConfigNode::FromInt(3));
  EXPECT_THAT(Run().status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("OPTIMIZER.num_epochs: 2 in the checkpoint, 3")));
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"OPTIMIZER.num_epochs"}));
  ASSERT_OK(Run().status());
  EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/step_9"));
}

TEST_F(FullTuneRunTest, BatchThatIsLargerThanTheData_IsAllOfIt) {
  SaveCheckpoint();
  config_.SetPath("FULL_TUNE.BATCH_SIZE", ConfigNode::FromInt(128));
  ASSERT_OK(Run().status());
  EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/step_2"));  // 48 samples, twice
}

// The training beside it saves another one, and removes the one that has been prepared.
TEST_F(FullTuneRunTest, CheckpointRemovedMeanwhile_IsTheNextOne) {
  SaveCheckpoint(7);
  const auto read_weights = registries_.initialize_weights;
  int calls = 0;
  registries_.initialize_weights = [&](Model& model, const BuildContext& context) {
    if (++calls == 1) {
      SaveCheckpoint(9, 1);
      EXPECT_OK(PosixFileSystem().RemoveAll(directory_ + "/checkpoints/step_7"));
    }
    return read_weights(model, context);
  };
  ASSERT_OK(Run().status());
  EXPECT_EQ(calls, 2);
}

// Rank 0 has read the weights when the one that is saved next takes their place, and rank 1 has not.
TEST_F(FullTuneRunTest, CheckpointRemovedMeanwhileForOneRank_IsTheNextOneForAll) {
  SaveCheckpoint(9, 1);
  const std::string checkpoints = directory_ + "/checkpoints";
  ASSERT_OK(PosixFileSystem().Rename(checkpoints + "/step_9", directory_ + "/kept"));
  SaveCheckpoint(7);
  const auto read_weights = registries_.initialize_weights;
  std::atomic<int> calls{0};
  registries_.initialize_weights = [&](Model& model, const BuildContext& context) -> absl::Status {
    if (++calls > 2) return read_weights(model, context);
    const bool is_late = context.communicator.rank() == 1;
    const absl::Status read = is_late ? absl::OkStatus() : read_weights(model, context);
    if (!context.communicator.Barrier().ok() || !is_late) return read;
    EXPECT_OK(PosixFileSystem().Rename(directory_ + "/kept", checkpoints + "/step_9"));
    EXPECT_OK(PosixFileSystem().RemoveAll(checkpoints + "/step_7"));
    return read_weights(model, context);
  };
  EXPECT_OK(RunOnRanks(2, [](const EngineReport& report) { EXPECT_THAT(report.summary, HasSubstr("\n2 ")); }));
  EXPECT_EQ(calls, 4);
}

// Of the model that is trained; the first one is that of which the weights are looked at. Rank 0 waits in vain.
TEST_F(FullTuneRunTest, ErrorOfOneRank_IsItsOwn) {
  SaveCheckpoint();
  int models = 0;
  const auto make = [&](const ConfigNode& params,
                        const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (context.communicator.rank() == 1 && ++models > 1) return absl::ResourceExhaustedError("no memory here");
    return registries_.models.Make("multi_input_output_model", params, context);
  };
  ASSERT_OK(registries_.models.Register("unlike", make));
  config_.SetPath("MODEL.BASE_MODEL_NAME", ConfigNode::FromString("unlike"));
  absl::Status of_rank[2];
  const absl::Status ended = ThreadWorld(2, absl::Seconds(15)).Run([&](Communicator& communicator) {
    return of_rank[communicator.rank()] = RunRank(communicator).status();
  });
  EXPECT_FALSE(ended.ok());
  EXPECT_THAT(of_rank[1], StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no memory here")));
  EXPECT_THAT(of_rank[0].message(), Not(HasSubstr("other operations")));
}

// Found by the check before a training, too, and before an earlier fine-tuning is removed.
TEST_F(FullTuneRunTest, WithoutLabels_NothingIsRemoved) {
  SaveCheckpoint();
  ASSERT_OK(Run().status());
  config_.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  const ConfigNode labelled = config_;
  for (const std::string split : {"DATA.TRAIN", "DATA.TEST"}) {
    for (const int64_t num_classes : {0, 48}) {
      config_ = labelled;
      config_.SetPath(split + ".RANDOM_SYNTHETIC_LABELS", ConfigNode::FromInt(0));
      config_.SetPath("FULL_TUNE.NUM_CLASSES", ConfigNode::FromInt(num_classes));
      const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("full_tune needs labels"), HasSubstr(split + ".LABEL_SOURCES")));
      EXPECT_THAT(Run().status(), refused);
      EXPECT_THAT(Check(), refused);
      EXPECT_TRUE(PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/step_6"));
    }
  }
  config_ = labelled;
  EXPECT_OK(Check());
}

// A head would have an output for each number below.
TEST_F(FullTuneRunTest, LabelsThatAreIdentifiers_AreRefusedWithTheirFile) {
  SaveCheckpoint();
  const std::string labels = directory_ + "/labels.txt";
  std::string lines;
  for (int i = 0; i < 48; ++i) absl::StrAppend(&lines, i % 2 == 0 ? "0\n" : "2000000000\n");
  std::ofstream(labels) << lines;
  config_.SetPath("DATA.TRAIN.LABEL_SOURCES", ConfigNode::FromStrings({"disk_filelist"}));
  config_.SetPath("DATA.TRAIN.LABEL_PATHS", ConfigNode::FromStrings({labels}));
  config_.SetPath("DATA.TRAIN.LABEL_TYPE", ConfigNode::FromString("sample_index"));  // of the pre-training
  const auto refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr(absl::StrCat("LABEL_PATHS [", labels, "] has label 2000000000,")), HasSubstr("from 0 on")));
  EXPECT_THAT(Run().status(), refused);
  EXPECT_THAT(Check(), refused);
}

TEST_F(FullTuneRunTest, ClassesOfTheTestSetThatTrainingLacks_AreRefusedBeforeTraining) {
  SaveCheckpoint();
  config_.SetPath("DATA.TEST.RANDOM_SYNTHETIC_LABELS", ConfigNode::FromInt(5));
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("config.DATA.TEST.DATA_SOURCES [synthetic] has label 4"),
                                      HasSubstr("below 4"), HasSubstr("config.FULL_TUNE.NUM_CLASSES")));
  EXPECT_THAT(Run().status(), refused);
  EXPECT_THAT(Check(), refused);
  config_.SetPath("FULL_TUNE.NUM_CLASSES", ConfigNode::FromInt(5));
  EXPECT_OK(Check());
}

// The user knows the keys of FULL_TUNE only.
TEST_F(FullTuneRunTest, Mistakes_AreNamedByTheKeysOfFullTune) {
  SaveCheckpoint();
  config_.SetPath("FULL_TUNE.DATA_LIMIT", ParseYaml("0", "tune.yaml", nullptr).value());
  EXPECT_THAT(Run().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tune.yaml:1: config.FULL_TUNE.DATA_LIMIT is 0, expected at least 1, or -1")));
  config_.SetPath("FULL_TUNE.DATA_LIMIT", ConfigNode::FromInt(-1));
  ASSERT_OK(Run().status());
  config_.SetPath("FULL_TUNE.NUM_EPOCHS", ParseYaml("3", "tune.yaml", nullptr).value());
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       AllOf(HasSubstr("OPTIMIZER.num_epochs: 2 in the checkpoint, 3"),
                                             HasSubstr("tune.yaml:1: config.FULL_TUNE.NUM_EPOCHS sets "
                                                       "config.OPTIMIZER.num_epochs"),
                                             HasSubstr("OVERWRITE_EXISTING=True removes that folder"))));
  // No advice to do what is done.
  config_.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  config_.SetPath("FULL_TUNE.TRANSFORMS", ParseYaml("[{name: CenterCrop, size: 0}]", "tune.yaml", nullptr).value());
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       AllOf(HasSubstr("tune.yaml:1"), Not(HasSubstr("OVERWRITE_EXISTING")))));
  config_.SetPath("FULL_TUNE.TRANSFORMS", ConfigNode::List());
  EXPECT_OK(Run().status());
}

TEST_F(FullTuneRunTest, WithoutWeights_IsAnError) {
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no trained weights")));
}

// Nothing of the present weights would be in what goes on, whatever the user allows.
TEST_F(FullTuneRunTest, LaterWeights_CannotBeAllowed) {
  SaveCheckpoint(7);
  ASSERT_OK(Run().status());
  SaveCheckpoint(9, 1);
  const absl::Status refused = Run().status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("OVERWRITE_EXISTING=True")));
  EXPECT_THAT(refused.message(), Not(HasSubstr("ALLOW_CHANGES")));
  for (const char* allowed : {"FULL_TUNE.initial_weights", "FULL_TUNE"}) {
    config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({allowed}));
    EXPECT_EQ(Run().status(), refused) << allowed;
  }
}

}  // namespace
}  // namespace ssl
