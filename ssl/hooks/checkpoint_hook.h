// SPDX-License-Identifier: Apache-2.0
//
// Decides when the run's state is saved; context.checkpoints does the saving. Stage kPersist.
//
// Saved are: the end of a train phase of epoch 0, F, 2F, ... and of the last epoch (F = CHECKPOINT_FREQUENCY, VISSL's
// rule; before that epoch's test phase), and every CHECKPOINT_ITER_FREQUENCY iterations. What is new when a run ends
// well or is asked to stop, the trainer saves itself. All decisions follow from counters that are equal on all ranks.
#ifndef SSL_HOOKS_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_CHECKPOINT_HOOK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

namespace ssl {

class CheckpointHook : public Hook {
 public:
  // Epochs and iterations between checkpoints, as CheckpointOptions has them; below 1 there are none for that reason.
  CheckpointHook(int64_t epoch_frequency, int64_t iteration_frequency)
      : epoch_frequency_(epoch_frequency), iteration_frequency_(iteration_frequency) {}

  absl::string_view name() const override { return "checkpoint"; }
  HookStage stage() const override { return HookStage::kPersist; }

  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  const int64_t epoch_frequency_;
  const int64_t iteration_frequency_;
};

}  // namespace ssl

#endif  // SSL_HOOKS_CHECKPOINT_HOOK_H_
