// SPDX-License-Identifier: Apache-2.0
//
// What the loop does with one batch; TRAINER.TRAIN_STEP_NAME chooses it. A host's own is one class and one line
// `registries.train_steps.Register(name, factory)`, as in examples/embed. The counters, and what the method remembers
// of a batch, are the trainer's to advance.
#ifndef SSL_CORE_TRAIN_STEP_H_
#define SSL_CORE_TRAIN_STEP_H_

#include "absl/status/status.h"

namespace ssl {

class HookList;
class SelfSupervisionTask;
struct StepContext;

class TrainStep {
 public:
  virtual ~TrainStep() = default;

  // Trains on context.batch, best by the verbs of step_verbs.h; events in between reach `hooks`. With gradient
  // accumulation it is called once for each of context.batches_per_update batches, and updates with the last one.
  // Gradients are undefined before the first. LibTorch's exceptions become a Status.
  virtual absl::Status Train(SelfSupervisionTask& task, HookList& hooks, StepContext& context) = 0;

  // Measures context.batch, without gradients.
  virtual absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_TRAIN_STEP_H_
