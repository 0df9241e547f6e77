// SPDX-License-Identifier: Apache-2.0
//
// On the CPU the step that records is the standard one, and its updates run in the memory of the first: with the
// program's allocator they ask the system for none.
#include <ATen/Parallel.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using testing::Each;
using testing::SizeIs;

// Of large tensors, after each update: all memory that the system has given, and the most in use within the update.
struct Memory {
  std::vector<int64_t> held;
  std::vector<int64_t> peaks;
};

class MemoryHook : public Hook {
 public:
  explicit MemoryHook(Memory* memory) : memory_(*memory) {}
  absl::string_view name() const override { return "memory"; }
  HookStage stage() const override { return HookStage::kPersist; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  absl::Status OnStep(StepContext&) override {
    const TensorMemory now = GetTensorMemory();
    memory_.held.push_back(now.in_use + now.kept);
    memory_.peaks.push_back(now.peak);
    ResetTensorMemoryPeak();
    return absl::OkStatus();
  }

 private:
  Memory& memory_;
};

TEST(GraphStepMemory, UpdatesOnTheCpu_AskTheSystemForNone) {
  InstallTensorMemory();
  at::set_num_threads(1);  // what several have at once depends on when each of them runs, as a loader's threads do
  Memory memory;
  TrainingRun run;
  run.config = {R"(
DATA: {NUM_DATALOADER_WORKERS: 0, TRAIN: {DEFAULT_GRAY_IMG_SIZE: 32, TRANSFORMS: [{name: ToTensor}]}}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, STEM: small, STAGES: 2, INIT: kaiming_fan_out}}
  HEAD: {PARAMS: [[mlp, {dims: [128, 4]}]]}
LOSS: {name: CrossEntropyLoss}
OPTIMIZER: {grad_acc_steps: 2, param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.001,
            end_value: 0.0}}}
TRAINER: {TRAIN_STEP_NAME: graph_train_step}
)"};
  run.prepare = [&](Session& session, const Communicator&) {
    return session.AddHook(std::make_unique<MemoryHook>(&memory));
  };
  ASSERT_OK(Train(run));
  ASSERT_THAT(memory.held, SizeIs(8));
  EXPECT_GT(memory.held[0], int64_t{16} << 20) << "tensors are large enough to count";
  EXPECT_THAT(std::vector<int64_t>(memory.held.begin() + 1, memory.held.end()), Each(memory.held[1]));
  EXPECT_THAT(std::vector<int64_t>(memory.peaks.begin() + 1, memory.peaks.end()), Each(memory.peaks[1]));
}

}  // namespace
}  // namespace ssl
