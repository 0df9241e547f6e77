// SPDX-License-Identifier: Apache-2.0
//
// What graph_train_step keeps of the device's memory, and when it gives it back; on the stand-in device.
#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/graph_runs.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_graph.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using testing::ElementsAre;

class GraphMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  const std::string directory_ = MakeTempDir("graph_memory");
};

// A GPU's graph keeps memory that nothing else can use.
TEST_F(GraphMemory, SmallerLastBatchWithoutRoomBeside_EndsTheRecording) {
  SetStandinRoom(false);
  const absl::Cleanup room = [] { SetStandinRoom(true); };
  GraphRun run;
  run.config = {kSupervisedRun, "DATA: {TRAIN: {DATA_LIMIT: 90, DROP_LAST: False}}"};
  run.directory = directory_;
  ASSERT_OK_AND_ASSIGN(const GraphRunOutcome outcome, TrainGraphRun(std::move(run)));
  EXPECT_EQ(outcome.recordings, 2) << "one in each epoch that is long enough";
}

// Notes how many recordings there are in each update.
class RecordingsHook : public Hook {
 public:
  explicit RecordingsHook(std::vector<int64_t>* out) : out_(*out) {}
  absl::string_view name() const override { return "recordings"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnForward(StepContext& context) override {
    out_.push_back(StandinRecordings());
    return absl::OkStatus();
  }

 private:
  std::vector<int64_t>& out_;
};

TEST_F(GraphMemory, RecordingWhoseUpdatesDoNotComeAgain_IsGoneBeforeTheNextFullOne) {
  std::vector<int64_t> recordings;
  GraphRun run;
  run.config = {kSupervisedRun, "MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [[heads.0.clf.0.weight, 5]]}"};
  run.directory = directory_;
  run.last_iteration = 9;
  run.hook = std::make_unique<RecordingsHook>(&recordings);
  ASSERT_OK(TrainGraphRun(std::move(run)));
  EXPECT_THAT(recordings, ElementsAre(0, 0, 1, 1, 1, 0, 0, 1, 1));
}

// Notes in each update who else uses the first view of the first.
class FirstViewHook : public Hook {
 public:
  explicit FirstViewHook(std::vector<int64_t>* out) : out_(*out) {}
  absl::string_view name() const override { return "first_view"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnForward(StepContext& context) override {
    if (!first_.has_value()) first_.emplace(context.batch->views[0].getIntrusivePtr());
    out_.push_back(static_cast<int64_t>(first_->use_count()));
    return absl::OkStatus();
  }

 private:
  std::optional<c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>> first_;
  std::vector<int64_t>& out_;
};

TEST_F(GraphMemory, BatchesThatWereHeldForNothing_AreGivenBack) {
  std::vector<int64_t> uses;
  GraphRun run;
  run.config = {
      kSupervisedRun,
      "OPTIMIZER: {grad_acc_steps: 2, num_epochs: 8}\nMODEL: {TRUNK: {VISION_TRANSFORMERS: {DROPOUT_RATE: 0.1}}}"};
  run.directory = directory_;
  run.hook = std::make_unique<FirstViewHook>(&uses);
  ASSERT_OK(TrainGraphRun(std::move(run)));
  EXPECT_EQ(uses.back(), 0);
}

}  // namespace
}  // namespace ssl
