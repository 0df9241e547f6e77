// SPDX-License-Identifier: Apache-2.0
//
// Updates parameters from their gradients, many tensors per operation.
#ifndef SSL_CORE_OPTIMIZER_H_
#define SSL_CORE_OPTIMIZER_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/stateful.h"

namespace ssl {

class Communicator;

// Parameters that share a learning rate, weight decay and momentum.
struct ParameterGroup {
  std::string name;                // "regularized", "unregularized"
  std::vector<std::string> names;  // of the parameters, for messages and state
  std::vector<at::Tensor> parameters;
  double learning_rate = 0.0;
  double weight_decay = 0.0;
  // The entries of OPTIMIZER.param_schedulers that set the two; "": the value above stays.
  std::string learning_rate_schedule = "lr";
  std::string weight_decay_schedule = {};
  // Likewise, both set by an optimizer that has a momentum, when it is initialized.
  double momentum = 0.0;
  std::string momentum_schedule = {};
  double learning_rate_scale = 1.0;  // times what the schedule says, as in layer-wise decay
  // Where defined, what counts in place of learning_rate: [] on the parameters' device, for a step that is recorded
  // once and repeated with other values (Optimizer::is_recordable).
  at::Tensor learning_rate_tensor = {};
  // Not null: each tensor is this rank's shard (parameter_shards.h), and a norm is over the shards of these ranks.
  Communicator* shard_ranks = nullptr;
};

class Optimizer : public Stateful {
 public:
  // Once, before the first step. Parameters are the model's live tensors.
  virtual absl::Status Initialize(std::vector<ParameterGroup> groups) = 0;

  // The groups; a schedule writes learning_rate, weight_decay and momentum before each step.
  virtual std::vector<ParameterGroup>& groups() = 0;

  // One update. A parameter without a gradient (undefined grad) is left alone: no decay, no momentum.
  // found_inf: StepContext::found_inf, float32 [] on the parameters' device, 0 or 1. Where it is 1, float16 gradients
  // have overflowed and nothing changes: no parameter, no momentum, no counter of steps. Undefined: the update counts.
  // One that cannot ask on the device reads it (SkipsUpdate), and waits for the device in each update.
  // Gradients may be changed in place. May throw LibTorch exceptions.
  virtual void Step(const at::Tensor& found_inf) = 0;

  // Whether Step may be recorded and repeated (graph_train_step): it takes learning rates from their tensors, and
  // neither reads from the device nor decides by anything but its parameters' groups.
  virtual bool is_recordable() const { return false; }

  // After each Step: brings the parameters that other ranks have updated (sharded_optimizer.h). Collective; errors are
  // those of the communicator. Nothing to do where every rank updates all of them.
  virtual absl::Status GatherUpdates() { return absl::OkStatus(); }

  // Drops all gradients (sets them to undefined).
  void ZeroGrad();
};

// Whether the argument of Optimizer::Step says that nothing may change. Waits for the device. May throw LibTorch
// exceptions.
bool SkipsUpdate(const at::Tensor& found_inf);

}  // namespace ssl

#endif  // SSL_CORE_OPTIMIZER_H_
