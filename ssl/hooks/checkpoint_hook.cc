// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/checkpoint_hook.h"

#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

absl::Status Save(StepContext& context) {
  return context.checkpoints == nullptr ? absl::OkStatus() : context.checkpoints->Save();
}

bool IsMultiple(int64_t count, int64_t frequency) { return frequency > 0 && count % frequency == 0; }

}  // namespace

void CheckpointHookOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("CHECKPOINT_FREQUENCY", &epoch_frequency, Doc("train epochs between checkpoints; below 1 for none"));
  visitor.Field("CHECKPOINT_ITER_FREQUENCY", &iteration_frequency,
                Doc("iterations between checkpoints; below 1 for none"));
}

absl::Status CheckpointHook::OnStep(StepContext& context) {
  if (context.checkpoints != nullptr) SSL_RETURN_IF_ERROR(context.checkpoints->Poll());
  if (!context.state.training || !IsMultiple(context.state.iteration, options_.iteration_frequency)) {
    return absl::OkStatus();
  }
  return Save(context);
}

absl::Status CheckpointHook::OnPhaseEnd(StepContext& context) {
  if (!context.state.training || options_.epoch_frequency < 1) return absl::OkStatus();
  const int64_t epoch = context.state.train_phase_index;
  if (!IsMultiple(epoch, options_.epoch_frequency) && epoch != context.num_epochs - 1) return absl::OkStatus();
  return Save(context);
}

absl::Status CheckpointHook::OnEnd(StepContext& context) {
  // A process that made no step has nothing new to save.
  if (failed_ || context.state.iteration == context.first_iteration) return absl::OkStatus();
  return Save(context);
}

absl::Status CheckpointHook::OnException(StepContext& context, const absl::Status& error) {
  failed_ = true;
  return absl::OkStatus();
}

}  // namespace ssl
