// SPDX-License-Identifier: Apache-2.0
//
// Where a restored run goes on. What a checkpoint counts in updates and epochs says where it stands; batches and phases
// are counted anew, because a run may resume with other batches per update or other test phases.
#ifndef SSL_CORE_RESUME_POSITION_H_
#define SSL_CORE_RESUME_POSITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/phases_builder.h"
#include "ssl/core/train_state.h"

namespace ssl {

// Takes `state`, just restored, to the same place in a run of `phases` with `updates_per_epoch` updates in each train
// phase:
// - a train phase in progress goes on behind the batches of the updates that it has done;
// - a test phase in progress begins anew: its data may be others, and it leaves nothing in the training;
// - when test phases lie elsewhere now, the run goes on after the train phase that it had done last.
// InvalidArgument when the updates done are not those of the epochs done (an epoch of that run was another one), or a
// train phase in progress would get another index: samplers count phases, so the rest of it would be other data.
absl::Status FitPosition(const std::vector<Phase>& phases, int64_t updates_per_epoch, TrainState* state);

}  // namespace ssl

#endif  // SSL_CORE_RESUME_POSITION_H_
