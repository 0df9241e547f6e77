// SPDX-License-Identifier: Apache-2.0
//
// A self-supervised method: how the model is run on a batch, and the loss. Backward, accumulation, mixed precision,
// gradient reduction, clipping and the optimizer belong to the train step and are written once.
#ifndef SSL_CORE_METHOD_H_
#define SSL_CORE_METHOD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/hook.h"
#include "ssl/core/model.h"
#include "ssl/core/stateful.h"

namespace ssl {

struct StepContext;

class Method : public Stateful {
 public:
  // Once, before training, when model and data are known: allocates what depends on them, checks what only the
  // whole can tell (heads, number of views, batch size).
  virtual absl::Status Prepare(StepContext& context) { return absl::OkStatus(); }

  // Sets context.outputs. The default runs the model on all views, or on the named inputs. A train step may call it
  // more than once for a batch. May throw LibTorch exceptions.
  virtual absl::Status Forward(StepContext& context);

  // Sets context.loss (scalar with its graph, the mean over the local batch). Leaves what the method remembers between
  // batches alone: a train step may compute a batch's loss more than once, and a step that fails must have changed
  // nothing. May throw LibTorch exceptions.
  virtual absl::Status ComputeLoss(StepContext& context) = 0;

  // Takes what the last Forward and ComputeLoss saw into what the method remembers: queues, counters. Once for each
  // batch that was trained on, after the update if there was one. May throw LibTorch exceptions.
  virtual absl::Status Advance(StepContext& context) { return absl::OkStatus(); }

  // For a train step that records the operations of an update and repeats them (graph_train_step): a number that stays
  // as long as Forward, ComputeLoss and Advance queue the same operations, on tensors that keep their memory, and
  // change nothing else from batch to batch; before an update. None: they do, and such a step gives way to the standard
  // one.
  virtual std::optional<int64_t> RecordingKey(const StepContext& context) const { return std::nullopt; }

  // Whether batches have to have labels, in train and in test phases.
  virtual bool needs_labels() const { return false; }

  // Whether each label is the number of a class, one for each column of the last output.
  virtual bool labels_are_classes() const { return false; }

  // The number in the place of a label that says not to count the sample.
  virtual int64_t ignored_label() const { return -1; }

  // Whether the columns of an output are scores of classes, rather than an embedding.
  virtual bool scores_classes() const { return labels_are_classes(); }

  // Hooks that the method needs, already bound to it. The method outlives them.
  virtual std::vector<std::unique_ptr<Hook>> MakeHooks() { return {}; }
};

}  // namespace ssl

#endif  // SSL_CORE_METHOD_H_
