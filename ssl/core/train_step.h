// SPDX-License-Identifier: Apache-2.0
//
// What the loop does for one update, or with one batch of a test phase; TRAINER.TRAIN_STEP_NAME chooses it. A host's
// own is one class and one line `registries.train_steps.Register(name, factory)`, as in examples/embed.
#ifndef SSL_CORE_TRAIN_STEP_H_
#define SSL_CORE_TRAIN_STEP_H_

#include "absl/status/status.h"

namespace ssl {

class HookList;
class SelfSupervisionTask;
struct StepContext;

// The batches of an update, context.batches_per_update of them, one after another: the trainer's, which also takes the
// LibTorch exceptions that its calls may throw.
class UpdateBatches {
 public:
  virtual ~UpdateBatches() = default;

  // Sets context.batch, valid until the next call, and context.batch_in_update; tells OnBatchStart.
  virtual absl::Status Next() = 0;

  // Once for each batch, when it has been trained on: takes context.loss into the mean of the phase, has the method
  // remember what it saw (Method::Advance), and advances the counters.
  virtual absl::Status Finish() = 0;

  // As Finish, without the method: for a step that has called its Advance.
  virtual void Count() = 0;
};

class TrainStep {
 public:
  virtual ~TrainStep() = default;

  // Makes one update, best by the verbs of step_verbs.h; events in between reach `hooks`. Each batch comes from
  // batches.Next() and ends with batches.Finish(). Gradients are undefined before. LibTorch's exceptions of its own
  // work become a Status.
  virtual absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                             StepContext& context) = 0;

  // Measures context.batch, without gradients.
  virtual absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_TRAIN_STEP_H_
