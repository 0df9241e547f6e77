// SPDX-License-Identifier: Apache-2.0
//
// The mean loss of a phase, which is reported at its end. The sum stays where the run computes: adding to it does not
// wait. Used by one thread.
#ifndef SSL_CORE_PHASE_LOSS_H_
#define SSL_CORE_PHASE_LOSS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/core/method.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

class PhaseLoss : public Stateful {
 public:
  explicit PhaseLoss(const c10::Device& device);

  // A phase begins.
  void Reset();

  // A phase goes on that has had `batches`, as this run counts them: it may accumulate others than the run that saved
  // it.
  void Fit(int64_t batches);

  // Adds context.loss, of context.batch: a batch of a train phase counts as one, one of a test phase as its samples
  // that count. May throw LibTorch exceptions.
  void Add(const StepContext& context, const Method& method);

  // Over all ranks; 0 of nothing. Collective: errors are the communicator's. Waits for the device. May throw LibTorch
  // exceptions.
  absl::StatusOr<double> Mean(Communicator& communicator) const;

  // phase_loss, phase_batches.
  void VisitState(StateVisitor& visitor) override;

 private:
  at::Tensor sum_;      // scalar: weighted, of this rank's batches
  int64_t weight_ = 0;  // the sum of the weights
};

}  // namespace ssl

#endif  // SSL_CORE_PHASE_LOSS_H_
