// SPDX-License-Identifier: Apache-2.0
//
// The batches of an update in tensors that stay from update to update: what a recorded update reads. Each is copied
// when it comes, because it is valid until the next one is asked for; a train step may then go through them.
//
//   HeldBatches held(&slots, batches, context);
//   SSL_RETURN_IF_ERROR(held.Take());
//   SSL_RETURN_IF_ERROR(standard.Train(task, hooks, held, context));   // or a replay, and batches.Count()
//
// Used by one thread.
#ifndef SSL_CORE_HELD_BATCHES_H_
#define SSL_CORE_HELD_BATCHES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/batch.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_step.h"

namespace ssl {

class HeldBatches : public UpdateBatches {
 public:
  // slots: the tensors; what fits a batch in type, sizes and strides is written over, the rest made anew. References
  // outlive it.
  HeldBatches(std::vector<Batch>* slots, UpdateBatches& batches, StepContext& context)
      : slots_(*slots), batches_(batches), context_(context) {}

  // Takes context.batches_per_update batches: OnBatchStart is told for all of them.
  absl::Status Take();

  // The next of those that were taken, with the generators as they were when it came: they are seeded for each batch.
  absl::Status Next() override;
  absl::Status Finish() override;
  void Count() override;

  // Whether one of several batches drew from the generators between Next and Finish.
  bool drew_numbers() const { return drew_numbers_; }

 private:
  // Of an update of one batch the generators are as they have to be.
  bool seeds_differ() const { return context_.batches_per_update > 1; }
  void Leave();

  std::vector<Batch>& slots_;
  UpdateBatches& batches_;
  StepContext& context_;
  std::vector<at::Tensor> generator_states_;
  std::optional<GeneratorScope> generator_;
  size_t next_ = 0;
  bool drew_numbers_ = false;
};

}  // namespace ssl

#endif  // SSL_CORE_HELD_BATCHES_H_
