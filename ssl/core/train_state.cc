// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/train_state.h"

namespace ssl {

void TrainState::VisitState(StateVisitor& visitor) {
  visitor.Int("phase_index", phase_index);
  visitor.Int("train_phase_index", train_phase_index);
  visitor.Int("iteration", iteration);
  visitor.Int("batch_in_phase", batch_in_phase);
  visitor.Int("phase_ended", phase_ended);
  visitor.Int("num_updates", samples_seen);  // VISSL's name, which checkpoints have
}

}  // namespace ssl
