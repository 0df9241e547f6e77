// SPDX-License-Identifier: Apache-2.0
//
// Decides when the run's state is saved; context.checkpoints does the saving. Stage kPersist.
//
// Saved are, at the end of a train phase (before that epoch's test phase):
// - epochs 1, F + 1, 2 F + 1, ... and the last one (F = CHECKPOINT_FREQUENCY, VISSL's rule). CHECKPOINT_ANCHOR=0 makes
//   that F, 2 F, ... and CHECKPOINT_START leaves out those before it (United Perception's save_freq and save_start).
// - every ROLLING_FREQUENCY epochs from ROLLING_START on, as the checkpoint named "rolling" ("rolling.<instance>" of an
//   instance with a name of its own), of which there is one: the one before goes, unless anything else has asked for it
//   (save_cur_freq and save_cur_start, which United Perception documents and does not have: theirs is the rule, the
//   rest is ours).
// And every CHECKPOINT_ITER_FREQUENCY iterations. What is new when a run ends well or is asked to stop, the trainer
// saves itself. All decisions follow from counters that are equal on all ranks. No state.
//
// After the first update of a process, when all that a checkpoint keeps is there, a file system without room for one is
// a warning: the save may be hours away.
#ifndef SSL_HOOKS_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_CHECKPOINT_HOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/cadence.h"
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
  // run_directory: where the checkpoints lie, "" for none; keep_last: how many are kept, 0 for all. For the warning.
  explicit CheckpointHook(const CheckpointCadenceOptions& options, std::string run_directory = "",
                          int64_t keep_last = 0);

  absl::string_view name() const override { return "checkpoint"; }
  HookStage stage() const override { return HookStage::kPersist; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  std::vector<PlannedAction> Plan() const override;

  // Gives the rolling checkpoint its name, when the process before was killed before it had done so.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  std::string RollingName() const;
  // Whether the epoch that has ended is one of those of the rolling checkpoint.
  bool IsRollingDue(const StepContext& context) const;
  absl::Status WarnOfFullDisk(StepContext& context) const;

  const Cadence epochs_;
  const Cadence updates_;
  const Cadence rolling_;
  const std::string run_directory_;
  const int64_t keep_last_;
};

// The names that such hooks of `config`, the resolved tree under "config", give to rolling checkpoints.
std::vector<std::string> RollingCheckpointNames(const ConfigNode& config);

absl::Status RegisterCheckpointHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_CHECKPOINT_HOOK_H_
