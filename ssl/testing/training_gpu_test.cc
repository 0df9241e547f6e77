// SPDX-License-Identifier: Apache-2.0
//
// Whole runs on a GPU, beside the CPU's: what the stand-in's tests compare bit for bit (standin_batches_test,
// standin_graph_training_test), here with streams, pinned memory and recordings that are real, and rounding of its own.
#include <ATen/Context.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t kSteps = 20;
// A value that rounds to the other side of a ReLU changes losses by 4e-3 within these steps, as the CPU and the
// stand-in show; two steps of a run differ by more than 1e-1.
constexpr double kTolerance = 2e-2;
// Of two runs in bfloat16 or float16, which round more.
constexpr double kShortTolerance = 1e-1;

constexpr char kCommon[] = R"(
DATA:
  NUM_DATALOADER_WORKERS: 2
  TRAIN:
    IMAGE_CHANNELS: 3
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: RandomHorizontalFlip}
      - {name: ImgPilColorDistortion, strength: 1.0}
      - {name: ImgPilGaussianBlur, p: 0.5, radius_min: 0.1, radius_max: 2.0}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.25, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[swav_head, {dims: [32, 32, 16], use_bn: True, num_clusters: [8]}]]}
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 32, start_iter: 2}}}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.001, end_value: 0.0}}}
)";

class TrainingOnAGpu : public testing::Test {
 protected:
  // Rounding as the CPU's, and the same convolutions for two runs.
  static void SetUpTestSuite() {
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
  }

  std::vector<double> LossesOf(const std::vector<std::string>& config, const std::string& directory,
                               int64_t last_iteration = -1) const {
    TrainingRun run;
    run.config = {kCommon};
    run.config.insert(run.config.end(), config.begin(), config.end());
    run.directory = absl::StrCat(root_, "/", directory);
    run.last_iteration = last_iteration;
    const absl::StatusOr<std::vector<RankTrace>> traces = Train(run);
    EXPECT_OK(traces);
    return traces.ok() ? (*traces)[0].losses : std::vector<double>();
  }

  static void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << "step " << i;
  }

  const std::string root_ = MakeTempDir("training_gpu");
};

constexpr char kGpu[] = "MACHINE: {DEVICE: gpu}";
constexpr char kRecorded[] = "TRAINER: {TRAIN_STEP_NAME: graph_train_step}";

TEST_F(TrainingOnAGpu, Losses_AreNearTheCpus) {
  const std::vector<double> expected = LossesOf({}, "cpu");
  ASSERT_THAT(expected, SizeIs(kSteps));
  ExpectNear(LossesOf({kGpu}, "gpu"), expected, kTolerance);
}

TEST_F(TrainingOnAGpu, RecordedUpdates_AreThoseOfTheStandardStep) {
  for (const std::string type : {"", "bfloat16", "float16"}) {
    SCOPED_TRACE(type);
    const std::string precision =
        type.empty() ? "{}" : absl::StrCat("MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: ", type, "}}");
    const std::vector<double> expected = LossesOf({kGpu, precision}, "standard_" + type);
    const CapturedLog log;
    ExpectNear(LossesOf({kGpu, precision, kRecorded}, "graph_" + type), expected,
               type.empty() ? kTolerance : kShortTolerance);
    EXPECT_THAT(log.lines, Contains(HasSubstr("is recorded for the next ones")));
  }
}

TEST_F(TrainingOnAGpu, ViewsOfTheDevice_TrainAsThoseOfTheHost) {
  const std::vector<double> expected = LossesOf({kGpu}, "host");
  ExpectNear(LossesOf({kGpu, "DATA: {TRAIN: {AUGMENT_ON: device}}"}, "device"), expected, kTolerance);
}

TEST_F(TrainingOnAGpu, RunThatStops_GoesOnThereAndOnTheCpu) {
  const std::vector<double> whole = LossesOf({kGpu}, "whole");
  ASSERT_THAT(whole, SizeIs(kSteps));
  const std::vector<double> rest(whole.begin() + 7, whole.end());
  for (const char* const device : {"gpu", "cpu"}) {
    SCOPED_TRACE(device);
    LossesOf({kGpu}, device, /*last_iteration=*/7);
    ExpectNear(LossesOf({absl::StrCat("MACHINE: {DEVICE: ", device, "}")}, device), rest, kTolerance);
  }
}

}  // namespace
}  // namespace ssl
