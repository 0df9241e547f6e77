// SPDX-License-Identifier: Apache-2.0
//
// SwAV (arXiv 2006.09882): swapped prediction of balanced cluster assignments between crops of an image.
//
// The model returns [embeddings, scores_0, scores_1, ...] and has parameters "...prototypes<j>.weight" (SwavHead).
// State: the iteration and, with a queue, embeddings and scores of earlier images of this rank. Like VISSL, the queue
// starts with random values, and its scores are recomputed from the step after the first that used it. Unlike VISSL,
// evaluation leaves iteration and queue alone.
#ifndef SSL_METHODS_SWAV_SWAV_METHOD_H_
#define SSL_METHODS_SWAV_SWAV_METHOD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/hook.h"
#include "ssl/core/method.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/swav/swav_options.h"

namespace ssl {

class ParameterShards;

class SwavMethod : public Method {
 public:
  // seed: of the queue's initial values; ranks draw different ones. root: {config: ...}, in which a warning looks for
  // the place of its key.
  SwavMethod(const SwavOptions& options, int64_t seed, ConfigNode root = {});

  // Finds the prototypes in the model, makes the queue and warns when there are more prototypes than rows to balance,
  // or more rows in the queue than images, or when the queue begins after the training's end. NotFound when the model
  // lacks a prototype layer; InvalidArgument when the options contradict each other.
  absl::Status Prepare(StepContext& context) override;

  // InvalidArgument when the outputs do not fit the options.
  absl::Status ComputeLoss(StepContext& context) override;

  // Counts the batch and, from queue.start_iter on, puts its embeddings into the queue.
  absl::Status Advance(StepContext& context) override;

  // From which batch of the update on the queue is used, and assignments are soft.
  std::optional<int64_t> RecordingKey(const StepContext& context) const override;

  // Queue scores, prototype normalisation, report after a failure: see swav_hooks.h.
  std::vector<std::unique_ptr<Hook>> MakeHooks() override;

  void VisitState(StateVisitor& visitor) override;

  // Recomputes the scores of the queue with the current prototypes, if the previous step used the queue.
  void UpdateQueueScores();

  // Around an update of `batches`: a train step that repeats recorded operations calls Advance on none of them.
  void BeginUpdate() { begin_of_update_ = iteration_; }
  void EndUpdate(int64_t batches);

  // Scales every prototype to unit length.
  void NormalizePrototypes();

  // What of `outputs` and of the last assignments is NaN or infinite, by crop and head; "" when nothing is.
  // Waits for the device.
  std::string DescribeNonFinite(const std::vector<at::Tensor>& outputs) const;

  bool uses_queue() const { return uses_queue_ != 0; }
  int64_t iteration() const { return iteration_; }

 private:
  absl::Status FindPrototypes(Model& model);
  void MakeQueue(int64_t local_length, int64_t rank);
  void WarnAboutQueue(const StepContext& context, int64_t length) const;
  void WarnAboutPrototypes(int64_t batch_size, int64_t local_queue_length, int64_t world_size) const;
  absl::Status CheckOutputs(const StepContext& context) const;
  // Whether the batch with this number is balanced together with the queue.
  bool QueueIsDue(int64_t iteration) const;
  void Enqueue(const at::Tensor& embeddings);

  const SwavOptions options_;
  const int64_t seed_;
  const ConfigNode root_;
  std::vector<at::Tensor> prototypes_;   // per head [K_h, D], the model's live parameters, or this rank's rows of them
  ParameterShards* shards_ = nullptr;    // null: they are whole
  std::vector<at::Tensor> assignments_;  // of the last loss, for DescribeNonFinite

  int64_t begin_of_update_ = 0;           // iteration_ then
  int64_t iteration_ = 0;                 // batches trained on
  int64_t uses_queue_ = 0;                // 1 when the last of them used the queue
  at::Tensor queue_embeddings_;           // [A, L, D], newest first; undefined without a queue
  std::vector<at::Tensor> queue_scores_;  // per head [A, L, K_h]
};

}  // namespace ssl

#endif  // SSL_METHODS_SWAV_SWAV_METHOD_H_
