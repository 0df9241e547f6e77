// SPDX-License-Identifier: Apache-2.0
//
// Which weights an evaluation takes, and what it says about settings that are not those of the training.
#include "ssl/engines/evaluation_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/run_directory.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
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
              AllOf(HasSubstr("Normalize of the images: {name: Normalize, mean: [0.1], std: [0.25]} in"),
                    HasSubstr("mean: [0.5], std: [0.25]} now (DATA.TEST.TRANSFORMS"), Not(HasSubstr("Grayscale"))));
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

}  // namespace
}  // namespace ssl
