// SPDX-License-Identifier: Apache-2.0
//
// Where training stands. Plain data with VISSL's counters; saved in every checkpoint.
#ifndef SSL_CORE_TRAIN_STATE_H_
#define SSL_CORE_TRAIN_STATE_H_

#include <cstdint>

#include "ssl/core/stateful.h"

namespace ssl {

struct TrainState : public Stateful {
  int64_t phase_index = -1;        // of the current phase, train and test phases counted; -1 before the first
  int64_t train_phase_index = -1;  // of the current or last train phase: the epoch
  int64_t iteration = 0;           // optimizer updates done
  int64_t batch_in_phase = 0;      // batches done in the current phase: VISSL's local iteration
  int64_t phase_ended = 1;         // 1 when the current phase is over and its hooks know, else 0
  int64_t samples_seen = 0;        // in training, over all ranks: VISSL's num_updates
  int64_t max_iterations = 0;      // of the whole training; derived, not saved
  int64_t batches_per_update = 1;  // gradient accumulation; derived, not saved
  bool training = true;            // the current phase trains; derived, not saved

  // Nothing is left to do in a run of `num_phases`.
  bool finished(int64_t num_phases) const { return phase_index + 1 >= num_phases && phase_ended == 1; }

  // Finished fraction of training in [0, 1].
  double where() const { return Fraction(iteration); }

  // The same at the start of the current train phase.
  double where_phase_started() const { return Fraction(iteration - batch_in_phase / batches_per_update); }

  void VisitState(StateVisitor& visitor) override;

 private:
  double Fraction(int64_t iterations) const {
    return max_iterations > 0 ? static_cast<double>(iterations) / static_cast<double>(max_iterations) : 0.0;
  }
};

}  // namespace ssl

#endif  // SSL_CORE_TRAIN_STATE_H_
