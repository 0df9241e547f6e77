// SPDX-License-Identifier: Apache-2.0
//
// Decides when the run's state is saved; context.checkpoints does the saving. Stage kPersist.
//
// Saved are: the end of a train phase of epoch 0, F, 2F, ... and of the last epoch (F = CHECKPOINT_FREQUENCY, VISSL's
// rule; before that epoch's test phase), every CHECKPOINT_ITER_FREQUENCY iterations, and OnEnd, which also ends a run
// that was asked to stop. After an error nothing is saved: the step may have changed only a part of the state, and
// the other ranks may be gone. All decisions follow from counters that are equal on all ranks.
#ifndef SSL_HOOKS_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_CHECKPOINT_HOOK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Frequencies below 1 switch that occasion off. Keys of the configuration's section CHECKPOINT.
struct CheckpointHookOptions : public Options {
  int64_t epoch_frequency = 1;
  int64_t iteration_frequency = -1;

  void VisitFields(FieldVisitor& visitor) override;
};

class CheckpointHook : public Hook {
 public:
  explicit CheckpointHook(const CheckpointHookOptions& options) : options_(options) {}

  absl::string_view name() const override { return "checkpoint"; }
  HookStage stage() const override { return HookStage::kPersist; }

  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;
  absl::Status OnEnd(StepContext& context) override;
  absl::Status OnException(StepContext& context, const absl::Status& error) override;

 private:
  CheckpointHookOptions options_;
  bool failed_ = false;  // of this process, not of the run: a restart begins with false
};

}  // namespace ssl

#endif  // SSL_HOOKS_CHECKPOINT_HOOK_H_
