// SPDX-License-Identifier: Apache-2.0
//
// The mean loss of a test phase is that of the test images, each once: it depends neither on the size of the batches,
// of which the last one may be small, nor on the number of ranks, of which some repeat an image where they do not
// divide the data. Whole sessions from a configuration; ranks are threads.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/core/meter.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// Of 18 test images, 4 ranks have 5 each: two of them repeat an image, in a batch of its own where batches have 4.
constexpr char kSupervised[] = R"(
TEST_MODEL: True
DATA:
  TRAIN: {TRANSFORMS: [{name: ToTensor}]}
  TEST:
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 18
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    TRANSFORMS: [{name: ToTensor}]
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2, INIT: kaiming_fan_out}}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
  HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}
LOSS: {name: CrossEntropyLoss}
OPTIMIZER: {num_epochs: 2, param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.001,
            end_value: 0.0}}}
)";

// What the ends of test phases say on each rank.
class TestLosses : public Hook {
 public:
  explicit TestLosses(std::vector<double>* losses) : losses_(*losses) {}
  absl::string_view name() const override { return "test_losses"; }
  HookStage stage() const override { return HookStage::kReport; }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (!context.state.training) losses_.push_back(context.meter_reports.at(0).values.at(0).value);
    return absl::OkStatus();
  }

 private:
  std::vector<double>& losses_;
};

std::vector<double> LossesOn(int64_t ranks, int64_t test_batch, const std::string& changes = "{}") {
  std::vector<std::vector<double>> losses(static_cast<size_t>(ranks));
  TrainingRun run;
  run.ranks = ranks;
  run.config = {kSupervised, absl::StrCat("DATA: {TEST: {BATCHSIZE_PER_REPLICA: ", test_batch, "}}"), changes};
  run.prepare = [&losses](Session& session, const Communicator& communicator) {
    return session.AddHook(std::make_unique<TestLosses>(&losses[static_cast<size_t>(communicator.rank())]));
  };
  EXPECT_OK(Train(run));
  EXPECT_THAT(losses, Each(losses[0]));
  return losses[0];
}

void ExpectSame(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_THAT(found, SizeIs(expected.size()));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5 * expected[i]);
}

TEST(TestPhaseLoss, IsTheSameForEachSizeOfBatchesAndNumberOfRanks) {
  const std::vector<double> expected = LossesOn(1, 18);  // the mean over one batch, which is all
  ASSERT_THAT(expected, SizeIs(2));
  EXPECT_GT(std::abs(expected[0] - expected[1]), 1e-2) << "training changes it by far more than is compared";
  for (const int64_t ranks : {1, 2, 4}) {
    for (const int64_t test_batch : {4, 5}) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, test batches of ", test_batch));
      ExpectSame(LossesOn(ranks, test_batch), expected);
    }
  }
}

// Of a smaller share of the labels in one batch than in another. Training, which takes the mean of the ranks' means,
// would differ.
TEST(TestPhaseLoss, CountsNoIgnoredLabels) {
  constexpr char kIgnored[] =
      "{LOSS: {CrossEntropyLoss: {ignore_index: 2}}, "
      "OPTIMIZER: {param_schedulers: {lr: {start_value: 0.0000000001}}}}";
  const std::vector<double> expected = LossesOn(1, 18, kIgnored);
  for (const int64_t ranks : {1, 2}) ExpectSame(LossesOn(ranks, 6, kIgnored), expected);
}

}  // namespace
}  // namespace ssl
