// SPDX-License-Identifier: Apache-2.0
//
// Which weights an evaluation takes, and what it says about settings that are not those of the training.
#include "ssl/engines/evaluation_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/run_directory.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EvaluationModelTest : public MatrixRun {
 protected:
  // What a knn of the run as it is set now warns about.
  std::string WarningsOfKnn() {
    const CapturedLog log;
    EXPECT_OK(Run("knn").status());
    return absl::StrJoin(log.warnings, "\n");
  }
};

TEST_F(EvaluationModelTest, SameSettings_AreNoWarning) {
  Set("DATA.TRAIN.TRANSFORMS", "[{name: ToTensor}, {name: Normalize, mean: [0.50], std: [0.25]}]");
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.TOPK", "3");
  Set("MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON", "True");
  EXPECT_THAT(WarningsOfKnn(), IsEmpty());
}

TEST_F(EvaluationModelTest, ChangeOfTheNetwork_IsAWarningWithBothValues) {
  Set("MODEL.TRUNK.RESNETS.MAXPOOL", "True");
  SaveRandomCheckpoint();
  Set("MODEL.TRUNK.RESNETS.MAXPOOL", "False");
  EXPECT_THAT(WarningsOfKnn(), AllOf(HasSubstr("checkpoints/step_7/config.json"),
                                     HasSubstr("config.MODEL.TRUNK.RESNETS.MAXPOOL: true in the checkpoint, false now "
                                               "(override.yaml:1)"),
                                     HasSubstr(directory_ + "/train_config.yaml")));
}

TEST_F(EvaluationModelTest, OtherNormalisation_IsAWarningWithBothValues) {
  Set("DATA.TRAIN.TRANSFORMS",
      "[{name: RandomHorizontalFlip}, {name: ToTensor}, {name: Normalize, mean: [0.1], std: [0.25]}]");
  SaveRandomCheckpoint();
  EXPECT_THAT(WarningsOfKnn(),
              AllOf(HasSubstr("Normalize of the images: {mean: [0.1], name: Normalize, std: [0.25]} in"),
                    HasSubstr("mean: [0.5], name: Normalize, std: [0.25]} now (DATA.TEST.TRANSFORMS"),
                    Not(HasSubstr("Grayscale"))));
}

TEST_F(EvaluationModelTest, ParamsFileThatLosesToTheCheckpoint_IsAWarning) {
  registries_.initialize_weights = [](Model&, const BuildContext&) { return absl::OkStatus(); };
  SaveRandomCheckpoint();
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", "other.pth");
  EXPECT_THAT(WarningsOfKnn(), AllOf(HasSubstr("config.MODEL.WEIGHTS_INIT.PARAMS_FILE is other.pth, and is not read"),
                                     HasSubstr("another config.CHECKPOINT.DIR")));
  SaveCheckpoint(at::full({64, 4}, 0.5, at::kFloat), 8);  // of a training that began with the file
  EXPECT_THAT(WarningsOfKnn(), IsEmpty());
}

TEST_F(EvaluationModelTest, Evaluate_NamesTheCheckpoint) {
  SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
  SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 8);
  CheckpointStore store({CheckpointDirectory(directory_), 0, ""}, PosixFileSystem(), *communicator_);
  EngineContext context = Context();
  Set("CHECKPOINT.EVALUATE", "bset");
  const auto evaluate = [&] { return MakeEvaluationModel(context, EvaluationWeights::kTrained); };
  EXPECT_THAT(evaluate().status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names: none")));
  ASSERT_OK(store.SetName("best", 7, /*replaceable=*/false));
  EXPECT_THAT(evaluate().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.CHECKPOINT.EVALUATE is 'bset'"), HasSubstr("did you mean 'best'"))));
  Set("CHECKPOINT.EVALUATE", "best");
  // In a command that trains, too, and before RESUME_FROM.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> held,
                       RunDirectory::Open(directory_, PosixFileSystem(), *communicator_));
  context.held_directory = held.get();
  Set("CHECKPOINT.RESUME_FROM", "8");
  ASSERT_OK_AND_ASSIGN(const EvaluationModel network, evaluate());
  EXPECT_EQ(network.weights, "checkpoint of iteration 7");
  EXPECT_EQ(network.model->Parameters()[0].value.max().item<double>(), 1.0);
  ASSERT_OK(PosixFileSystem().RemoveAll(store.StepDirectory(7)));
  EXPECT_THAT(evaluate().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("config.CHECKPOINT.EVALUATE is 7, and there is no ")));
}

TEST_F(EvaluationModelTest, ResumeFrom_IsTheStepThatIsEvaluated) {
  SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
  SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 8);
  EngineContext context = Context();
  const auto weight = [&]() -> double {
    const absl::StatusOr<EvaluationModel> network = MakeEvaluationModel(context, EvaluationWeights::kTrained);
    EXPECT_OK(network.status());
    return network.ok() ? network->model->Parameters()[0].value.max().item<double>() : 0.0;
  };
  EXPECT_EQ(weight(), 2.0);
  Set("CHECKPOINT.RESUME_FROM", "7");
  EXPECT_EQ(weight(), 1.0);
  Set("CHECKPOINT.RESUME_FROM", "6");
  EXPECT_THAT(MakeEvaluationModel(context, EvaluationWeights::kTrained).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.CHECKPOINT.RESUME_FROM is 6, and there is no "),
                             HasSubstr("checkpoints: 7, 8"))));
  // A command that trains as well has gone on from there.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> held,
                       RunDirectory::Open(directory_, PosixFileSystem(), *communicator_));
  context.held_directory = held.get();
  EXPECT_EQ(weight(), 2.0);
}

// A step that is named is meant: neither a file of weights nor random ones take its place.
TEST_F(EvaluationModelTest, ResumeFromWhoseFilesAreGone_IsDataLoss) {
  bool read_file = false;
  registries_.initialize_weights = [&](Model&, const BuildContext&) {
    read_file = true;
    return absl::OkStatus();
  };
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", "other.pth");
  Set("CHECKPOINT.RESUME_FROM", "7");
  EngineContext context = Context();
  for (const std::string file : {"model.safetensors", "MANIFEST.json"}) {
    ASSERT_OK(file_system_->RemoveAll(directory_ + "/checkpoints"));
    SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
    SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 8);
    ASSERT_OK(file_system_->RemoveFile(absl::StrCat(directory_, "/checkpoints/step_7/", file)));
    EXPECT_THAT(MakeEvaluationModel(context, EvaluationWeights::kTrained).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("config.CHECKPOINT.RESUME_FROM is 7"), HasSubstr("step_7/" + file))));
  }
  EXPECT_FALSE(read_file);
}

// A training beside the evaluation removes the step once it has verified. Counted calls are reads as well.
TEST_F(EvaluationModelTest, ResumeFromThatVanishesWhileItIsRead_IsDataLoss) {
  Set("CHECKPOINT.RESUME_FROM", "7");
  int removed_at = 1;
  for (bool acted = true; acted; ++removed_at) {
    SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.set_fault_reads(true);
    files.ActAtCall(removed_at, [&] { ASSERT_OK(PosixFileSystem().RemoveAll(directory_ + "/checkpoints/step_7")); });
    file_system_ = &files;
    EngineContext context = Context();
    const absl::StatusOr<EvaluationModel> network = MakeEvaluationModel(context, EvaluationWeights::kTrained);
    file_system_ = &PosixFileSystem();
    acted = files.calls() >= removed_at;
    if (network.ok()) {
      EXPECT_EQ(network->weights, "checkpoint of iteration 7") << "removed at read " << removed_at;
    } else {
      const auto text = HasSubstr("config.CHECKPOINT.RESUME_FROM is 7");
      EXPECT_THAT(network.status(), AnyOf(StatusIs(absl::StatusCode::kDataLoss, text),
                                          StatusIs(absl::StatusCode::kInvalidArgument, text)))
          << "removed at read " << removed_at;
    }
  }
  EXPECT_GT(removed_at, 3);
}

// A training beside the evaluation has found a better one, and the one before goes. Counted calls are reads as well.
TEST_F(EvaluationModelTest, NameThatMovesOnWhileItsCheckpointIsRead_IsFollowed) {
  Set("CHECKPOINT.EVALUATE", "best");
  CheckpointStore store({CheckpointDirectory(directory_), 0, ""}, PosixFileSystem(), *communicator_);
  int moved_at = 1;
  for (bool moved = true; moved; ++moved_at) {
    SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
    SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 8);
    ASSERT_OK(store.SetName("best", 7, /*replaceable=*/false));
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.set_fault_reads(true);
    files.ActAtCall(moved_at, [&] {
      ASSERT_OK(store.SetName("best", 8, /*replaceable=*/false));
      ASSERT_OK(PosixFileSystem().RemoveAll(store.StepDirectory(7)));
    });
    file_system_ = &files;
    EngineContext context = Context();
    const absl::StatusOr<EvaluationModel> network = MakeEvaluationModel(context, EvaluationWeights::kTrained);
    file_system_ = &PosixFileSystem();
    moved = files.calls() >= moved_at;
    ASSERT_OK(network) << "moved at read " << moved_at;
    EXPECT_THAT(network->weights, AnyOf("checkpoint of iteration 7", "checkpoint of iteration 8")) << moved_at;
  }
  EXPECT_GT(moved_at, 3);
}

// What one rank cannot read, no rank evaluates.
TEST_F(EvaluationModelTest, ResumeFromThatOneRankCannotRead_IsAnErrorOfAll) {
  SaveCheckpoint(at::full({64, 4}, 1.0, at::kFloat), 7);
  Set("CHECKPOINT.RESUME_FROM", "7");
  ThreadWorld world(2, absl::Seconds(30));
  std::vector<absl::Status> statuses(2);
  const absl::Status ran = world.Run([&](Communicator& communicator) {
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.set_fault_reads(true);
    if (communicator.rank() == 1) files.FailCall(1, EIO, FaultFileSystem::Repeat::kFromThenOn);
    ConfigNode results = ConfigNode::Map();
    EngineContext context{config_, registries_, communicator, *stop_, files, directory_, results};
    statuses[communicator.rank()] = MakeEvaluationModel(context, EvaluationWeights::kTrained).status();
    return absl::OkStatus();
  });
  ASSERT_OK(ran);
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("failed on rank 1 ")));
  EXPECT_FALSE(statuses[1].ok());
}

}  // namespace
}  // namespace ssl
