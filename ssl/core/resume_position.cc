// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/resume_position.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// Train phases among the first `count` phases.
int64_t CountTrainPhases(const std::vector<Phase>& phases, int64_t count) {
  const auto end = phases.begin() + std::min<int64_t>(count, phases.size());
  return std::count_if(phases.begin(), end, [](const Phase& phase) { return phase.train; });
}

// The index of the train phase with this number, from 1, which is there; -1, before all phases, for 0.
int64_t IndexOfTrainPhase(const std::vector<Phase>& phases, int64_t number) {
  int64_t index = -1;
  for (int64_t begun = 0; begun < number; begun += phases[index].train ? 1 : 0) ++index;
  return index;
}

}  // namespace

absl::Status FitPosition(const std::vector<Phase>& phases, int64_t updates_per_epoch, TrainState* state) {
  const auto num_phases = static_cast<int64_t>(phases.size());
  if (state->train_phase_index < -1 || state->train_phase_index >= num_phases || state->phase_index < -1 ||
      state->phase_index == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "phase ", state->phase_index, " and epoch ", state->train_phase_index, ", from 0, are no place in a run of ",
        num_phases, " phases; raise ", "config.OPTIMIZER.num_epochs, or choose another config.CHECKPOINT.DIR"));
  }
  const int64_t begun = state->train_phase_index + 1;  // epochs
  const int64_t whole = begun > 0 ? updates_per_epoch : 0;
  const int64_t updates = state->iteration - std::max<int64_t>(begun - 1, 0) * updates_per_epoch;  // of the last epoch
  const bool epoch_is_done = updates == whole;
  const bool known = CountTrainPhases(phases, phases.size()) >= begun;
  if (!known || updates < 0 || updates > whole || (state->phase_ended == 1 && !epoch_is_done)) {
    return absl::InvalidArgumentError(absl::StrCat("iteration ", state->iteration, " in epoch ", begun,
                                                   " is no place in a run with ", updates_per_epoch,
                                                   " updates in an epoch; put back batch size, gradient accumulation, "
                                                   "data and epochs, or choose another config.CHECKPOINT.DIR"));
  }
  const int64_t index = state->phase_index;
  const bool is_there =
      index < num_phases && CountTrainPhases(phases, index + 1) == begun && (epoch_is_done || phases[index].train);
  if (!is_there && !epoch_is_done) {
    return absl::InvalidArgumentError(
        absl::StrCat("epoch ", begun,
                     " is in progress, and its data is in another order when test phases before it "
                     "come or go; put back config.TEST_MODEL and config.TEST_EVERY_NUM_EPOCH until it has ended"));
  }
  if (!is_there) {
    state->phase_index = IndexOfTrainPhase(phases, begun);
    // Whether its end was told of, or a test phase was in progress, is not known: at worst a test phase comes twice.
    state->phase_ended = 1;
  }
  if (state->phase_ended == 1) return absl::OkStatus();
  state->batch_in_phase = phases[state->phase_index].train ? updates * state->batches_per_update : 0;
  return absl::OkStatus();
}

}  // namespace ssl
