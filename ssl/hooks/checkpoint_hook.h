// SPDX-License-Identifier: Apache-2.0
//
// Decides when the run's state is saved; context.checkpoints does the saving. Stage kPersist.
//
// Saved are: the end of a train phase of epoch 0, F, 2F, ... and of the last epoch (F = CHECKPOINT_FREQUENCY, VISSL's
// rule; before that epoch's test phase), and every CHECKPOINT_ITER_FREQUENCY iterations. What is new when a run ends
// well or is asked to stop, the trainer saves itself. All decisions follow from counters that are equal on all ranks.
#ifndef SSL_HOOKS_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_CHECKPOINT_HOOK_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/shared_options.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The keys of CHECKPOINT that say when.
struct CheckpointHookOptions : public ComponentOptions {
  CheckpointCadenceOptions cadence;

  absl::string_view section() const override { return "CHECKPOINT"; }
  bool enabled() const override { return true; }
  std::vector<SharedOptions> shared() override { return {{"CHECKPOINT", &cadence}}; }
};

class CheckpointHook : public Hook {
 public:
  explicit CheckpointHook(const CheckpointCadenceOptions& cadence) : cadence_(cadence) {}

  absl::string_view name() const override { return "checkpoint"; }
  HookStage stage() const override { return HookStage::kPersist; }

  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  const CheckpointCadenceOptions cadence_;
};

absl::Status RegisterCheckpointHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_CHECKPOINT_HOOK_H_
