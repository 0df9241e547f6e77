// SPDX-License-Identifier: Apache-2.0
//
// MoCo v2 (arXiv 1911.05722, 2003.04297): an encoder learns to find, for one view of an image, the key that a slowly
// following copy of itself made of the other view, among the keys of earlier images.
//
// Batch: views[0] is the query's, views[1] the key's (moco_collator). The model's first output is the embedding. State:
// the key encoder with all its buffers, and the queue. Like VISSL, the key encoder takes over the model's parameters at
// the first step but never its running statistics, which it does not use: it always normalises by its batch. Unlike
// VISSL, evaluation moves neither its parameters nor the queue.
#ifndef SSL_METHODS_MOCO_MOCO_METHOD_H_
#define SSL_METHODS_MOCO_MOCO_METHOD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/moco/key_queue.h"
#include "ssl/methods/moco/moco_options.h"

namespace ssl {

class MocoMethod : public Method {
 public:
  // encoder: a model made like the one that trains. shuffle_batch: several ranks exchange the images of the key view,
  // so that batch statistics do not tell which key belongs to a query. seed: of the queue's first values and of the
  // exchange; equal on all ranks. root: {config: ...}, in which a warning looks for the place of its key.
  MocoMethod(const MocoOptions& options, std::unique_ptr<Model> encoder, bool shuffle_batch, int64_t seed,
             ConfigNode root = {});

  // Pairs the parameters of model and key encoder, and makes the queue. InvalidArgument when queue_size is no multiple
  // of the batch over all ranks.
  absl::Status Prepare(StepContext& context) override;

  // Queries by the model, then the update of the key encoder, then the keys. InvalidArgument unless there are two
  // views.
  absl::Status Forward(StepContext& context) override;

  // InvalidArgument when the embeddings are not embedding_dim wide.
  absl::Status ComputeLoss(StepContext& context) override;

  // The batch's keys, of all ranks, go into the queue.
  absl::Status Advance(StepContext& context) override;

  // None where several ranks exchange images, in an order that the host draws.
  std::optional<int64_t> RecordingKey(const StepContext& context) const override;

  void VisitState(StateVisitor& visitor) override;

 private:
  bool Shuffles(const StepContext& context) const;
  absl::Status PairParameters(Model& model);
  // The key encoder's parameters become the model's, also those that do not train.
  absl::Status CopyWeights(Model& model);
  absl::Status UpdateEncoder(StepContext& context);
  // images: [B, C, H, W]. Returns [B, D] of unit length.
  at::Tensor EncodeImages(const at::Tensor& images);
  // The keys of all ranks' images, [W * B, D]: rank 0's first.
  absl::StatusOr<at::Tensor> EncodeAll(const at::Tensor& images, Communicator& communicator);
  absl::StatusOr<at::Tensor> EncodeShuffled(const at::Tensor& images, const StepContext& context);

  const MocoOptions options_;
  const std::unique_ptr<Model> encoder_;
  const bool shuffle_batch_;
  const int64_t seed_;
  const ConfigNode root_;
  // Parallel: what trains, and what follows it.
  std::vector<at::Tensor> query_parameters_;
  std::vector<at::Tensor> key_parameters_;
  at::Tensor keys_;  // [W * B, D] of the current batch
  // The iteration in which the key encoder last followed. Not state: a checkpoint lies between two iterations.
  int64_t followed_iteration_ = -1;
  // In this process. Before the first update the weights are what they were, so a later process may copy once more.
  bool copied_ = false;

  KeyQueue queue_;
};

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_MOCO_METHOD_H_
