// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/checkpoint_hook.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/run_preview.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/progress_line.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/system_usage.h"

namespace ssl {
namespace {

constexpr char kType[] = "checkpoint";

// Of the hook's instance.
std::string NameOfRolling(absl::string_view instance) {
  return instance == kType ? "rolling" : absl::StrCat("rolling.", instance);
}

absl::Status Save(StepContext& context) {
  return context.checkpoints == nullptr ? absl::OkStatus() : context.checkpoints->Save();
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckpoint(const CheckpointHookOptions& options, const ConfigNode& params,
                                                     const BuildContext& context) {
  const ConfigNode* keep_last = context.config.Section("CHECKPOINT").Find("KEEP_LAST");
  return std::make_unique<CheckpointHook>(options.cadence, context.run_directory,
                                          keep_last == nullptr ? 0 : keep_last->AsInt().value_or(0));
}

}  // namespace

CheckpointHook::CheckpointHook(const CheckpointCadenceOptions& options, std::string run_directory, int64_t keep_last)
    : epochs_{Cadence::Unit::kEpoch, options.epoch_frequency, options.epoch_start, options.epoch_anchor,
              /*at_end=*/options.epoch_frequency > 0},
      updates_{Cadence::Unit::kUpdate, options.iteration_frequency, 1, 0, /*at_end=*/false},
      rolling_{Cadence::Unit::kEpoch, options.rolling_start > 0 ? options.rolling_frequency : 0, options.rolling_start,
               options.rolling_start, /*at_end=*/false},
      run_directory_(std::move(run_directory)),
      keep_last_(keep_last) {}

std::vector<PlannedAction> CheckpointHook::Plan() const {
  std::vector<PlannedAction> plan;
  if (epochs_.every > 0) plan.push_back({"saves the run", epochs_, false, kCheckpointFile});
  if (updates_.every > 0) plan.push_back({"saves the run", updates_, false, kCheckpointFile});
  if (rolling_.every > 0) {
    plan.push_back(
        {"replaces the rolling checkpoint", rolling_, false, absl::StrCat("checkpoints/", RollingName(), ".step")});
  }
  return plan;
}

std::string CheckpointHook::RollingName() const { return NameOfRolling(instance_name()); }

bool CheckpointHook::IsRollingDue(const StepContext& context) const {
  return context.checkpoints != nullptr && rolling_.IsDue(context.state.train_phase_index + 1, context.num_epochs);
}

absl::Status CheckpointHook::OnStart(StepContext& context) {
  if (context.state.phase_ended == 0 || !IsRollingDue(context)) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t named, context.checkpoints->Named(RollingName()));
  const bool is_behind = named < context.state.iteration;
  return is_behind ? context.checkpoints->SaveAs(RollingName(), /*replaceable=*/true) : absl::OkStatus();
}

// Counts rank 0's files alone: other ranks write theirs beside them, and hooks and methods have state of their own.
absl::Status CheckpointHook::WarnOfFullDisk(StepContext& context) const {
  const std::optional<int64_t> free = FreeDiskBytes(run_directory_);
  if (context.communicator.rank() != 0 || !free.has_value()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(int64_t needed, BytesOfState(context.model));
  if (context.optimizer != nullptr) {
    SSL_ASSIGN_OR_RETURN(const int64_t of_optimizer, BytesOfState(*context.optimizer));
    needed += of_optimizer;
  }
  if (*free >= needed) return absl::OkStatus();
  SSL_LOG(WARNING) << "run directory " << run_directory_ << " is on a file system with " << FormatBytes(*free)
                   << " of free space, and one checkpoint takes at least " << FormatBytes(needed)
                   << " (config.CHECKPOINT.KEEP_LAST keeps "
                   << (keep_last_ == 0 ? "all" : absl::StrCat("the newest ", keep_last_))
                   << "): the next save will fail and end the run; make room there before, or start the run with "
                   << "another config.CHECKPOINT.DIR";
  return absl::OkStatus();
}

absl::Status CheckpointHook::OnStep(StepContext& context) {
  const TrainState& state = context.state;
  if (context.checkpoints != nullptr) {
    SSL_RETURN_IF_ERROR(context.checkpoints->Poll());
    const bool is_first = state.training && state.iteration == context.first_iteration + 1;
    if (is_first && instance_name() == kType) SSL_RETURN_IF_ERROR(WarnOfFullDisk(context));
  }
  return state.training && updates_.IsDue(state.iteration, state.max_iterations) ? Save(context) : absl::OkStatus();
}

absl::Status CheckpointHook::OnPhaseEnd(StepContext& context) {
  const TrainState& state = context.state;
  if (!state.training) return absl::OkStatus();
  if (epochs_.IsDue(state.train_phase_index + 1, context.num_epochs)) SSL_RETURN_IF_ERROR(Save(context));
  return IsRollingDue(context) ? context.checkpoints->SaveAs(RollingName(), /*replaceable=*/true) : absl::OkStatus();
}

std::vector<std::string> RollingCheckpointNames(const ConfigNode& config) {
  constexpr char kStart[] = "ROLLING_START";
  const auto rolls = [](const ConfigNode* start) { return start != nullptr && start->AsInt().value_or(0) > 0; };
  std::vector<std::string> names;
  if (rolls(config.Section("CHECKPOINT").Find(kStart))) names.push_back(NameOfRolling(kType));
  for (const HookEntry& entry : ReadHookEntries(config).value_or(std::vector<HookEntry>())) {
    if (entry.type == kType && rolls(entry.kwargs.Find(kStart))) {
      names.push_back(NameOfRolling(entry.name.empty() ? kType : entry.name));
    }
  }
  return names;
}

absl::Status RegisterCheckpointHook(Registries* registries) {
  return RegisterHook(registries, {kType, "saves the state of the run"}, &MakeCheckpoint);
}

}  // namespace ssl
