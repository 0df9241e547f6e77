// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/checkpoint_hook.h"

#include "ssl/base/status_macros.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

absl::Status Save(StepContext& context) {
  return context.checkpoints == nullptr ? absl::OkStatus() : context.checkpoints->Save();
}

bool IsMultiple(int64_t count, int64_t frequency) { return frequency > 0 && count % frequency == 0; }

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckpoint(const CheckpointHookOptions& options, const ConfigNode& params,
                                                     const BuildContext& context) {
  return std::make_unique<CheckpointHook>(options.cadence);
}

}  // namespace

absl::Status CheckpointHook::OnStep(StepContext& context) {
  if (context.checkpoints != nullptr) SSL_RETURN_IF_ERROR(context.checkpoints->Poll());
  if (!context.state.training || !IsMultiple(context.state.iteration, cadence_.iteration_frequency)) {
    return absl::OkStatus();
  }
  return Save(context);
}

absl::Status CheckpointHook::OnPhaseEnd(StepContext& context) {
  if (!context.state.training || cadence_.epoch_frequency < 1) return absl::OkStatus();
  const int64_t epoch = context.state.train_phase_index;
  if (!IsMultiple(epoch, cadence_.epoch_frequency) && epoch != context.num_epochs - 1) return absl::OkStatus();
  return Save(context);
}

absl::Status RegisterCheckpointHook(Registries* registries) {
  return RegisterHook(registries, {"checkpoint", "saves the state of the run"}, &MakeCheckpoint);
}

}  // namespace ssl
