// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/message_place.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/state_dict.h"
#include "ssl/losses/moco_loss.h"
#include "ssl/losses/scores.h"
#include "ssl/methods/moco/batch_order.h"
#include "ssl/optim/ema.h"

namespace ssl {
namespace {

// Of a batch normalisation layer, by PyTorch's names.
bool IsRunningStatistic(const std::string& name) {
  return absl::EndsWith(name, "running_mean") || absl::EndsWith(name, "running_var") ||
         absl::EndsWith(name, "num_batches_tracked");
}

absl::Status CheckViews(const StepContext& context) {
  const size_t views = context.batch->views.size();
  if (views == 2) return absl::OkStatus();
  const char* split = context.state.training ? "TRAIN" : "TEST";
  return absl::InvalidArgumentError(absl::StrCat("batch has ", views, " views, moco_loss expects 2: query and key ",
                                                 "(config.DATA.", split, ".COLLATE_FUNCTION moco_collator)"));
}

}  // namespace

MocoMethod::MocoMethod(const MocoOptions& options, std::unique_ptr<Model> encoder, bool shuffle_batch, int64_t seed,
                       ConfigNode root)
    : options_(options),
      encoder_(std::move(encoder)),
      shuffle_batch_(shuffle_batch),
      seed_(seed),
      root_(std::move(root)) {}

absl::Status MocoMethod::Prepare(StepContext& context) {
  // The resolver knows the ranks that the configuration names; a host may bring others.
  SSL_RETURN_IF_ERROR(CheckQueueSize(options_.queue_size, context.batch_size, context.communicator.size()));
  if (context.num_train_samples > 0 && options_.queue_size > context.num_train_samples) {
    const std::string warning = absl::StrCat(
        "config.LOSS.moco_loss.queue_size is ", options_.queue_size, ", more than the ", context.num_train_samples,
        " images of the training set: an image is its own negative, by older keys of it");
    SSL_LOG(WARNING) << WithPlaceOfKey(warning, root_);
  }
  SSL_RETURN_IF_ERROR(CheckNotSharded(context.model, "moco_loss"));
  SSL_RETURN_IF_ERROR(PairParameters(context.model));
  MoveState(*encoder_, query_parameters_.front().device());
  encoder_->SetTraining(true);
  queue_.Initialize(options_.queue_size, options_.embedding_dim, seed_, key_parameters_.front().device());
  return absl::OkStatus();
}

absl::Status MocoMethod::PairParameters(Model& model) {
  query_parameters_.clear();
  key_parameters_.clear();
  const std::vector<NamedParameter> queries = model.Parameters();
  const std::vector<NamedParameter> keys = encoder_->Parameters();
  if (queries.empty()) return absl::InvalidArgumentError("model has no trainable parameter, moco_loss expects some");
  SSL_RET_CHECK(queries.size() == keys.size(), "the key encoder was made from the same configuration");
  for (size_t i = 0; i < queries.size(); ++i) {
    query_parameters_.push_back(queries[i].value);
    key_parameters_.push_back(keys[i].value);
    key_parameters_.back().requires_grad_(false);
  }
  return absl::OkStatus();
}

absl::Status MocoMethod::CopyWeights(Model& model) {
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> from, CollectState(model));
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> to, CollectState(*encoder_));
  SSL_RET_CHECK(from.size() == to.size(), "the key encoder was made from the same configuration");
  for (size_t i = 0; i < from.size(); ++i) {
    if (IsRunningStatistic(from[i].name)) continue;
    at::Tensor target = to[i].tensor;
    target.copy_(from[i].tensor);
  }
  return absl::OkStatus();
}

absl::Status MocoMethod::UpdateEncoder(StepContext& context) {
  if (context.state.iteration == 0) {
    // Once: a step that goes through its first batch twice has moved the weights for the second time only.
    if (copied_) return absl::OkStatus();
    copied_ = true;
    return CopyWeights(context.model);
  }
  // The model moves once per update, and so does its follower, however many batches and passes an update takes.
  if (!context.state.training || followed_iteration_ == context.state.iteration) return absl::OkStatus();
  EmaUpdate(key_parameters_, query_parameters_, options_.momentum);
  followed_iteration_ = context.state.iteration;
  return absl::OkStatus();
}

// In a world of one, another order of the batch would change nothing but rounding.
bool MocoMethod::Shuffles(const StepContext& context) const {
  return shuffle_batch_ && context.communicator.size() > 1;
}

// In the first iteration the key encoder becomes a copy, later it follows.
std::optional<int64_t> MocoMethod::RecordingKey(const StepContext& context) const {
  if (Shuffles(context)) return std::nullopt;
  return context.state.iteration == 0 ? 0 : 1;
}

absl::Status MocoMethod::Forward(StepContext& context) {
  SSL_RETURN_IF_ERROR(CheckViews(context));
  const std::vector<at::Tensor>& views = context.batch->views;
  context.outputs = context.model.Forward({views[0]});
  SSL_RETURN_IF_ERROR(UpdateEncoder(context));
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(
      keys_, Shuffles(context) ? EncodeShuffled(views[1], context) : EncodeAll(views[1], context.communicator));
  return absl::OkStatus();
}

at::Tensor MocoMethod::EncodeImages(const at::Tensor& images) {
  return UnitRows(encoder_->Forward({images}).front().to(at::kFloat));
}

absl::StatusOr<at::Tensor> MocoMethod::EncodeAll(const at::Tensor& images, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, communicator.AllGather(EncodeImages(images)));
  return gathered.flatten(0, 1);
}

absl::StatusOr<at::Tensor> MocoMethod::EncodeShuffled(const at::Tensor& images, const StepContext& context) {
  Communicator& communicator = context.communicator;
  SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, communicator.AllGather(images));
  const at::Tensor all_images = gathered.flatten(0, 1);
  const at::Tensor order =
      BatchOrder(all_images.size(0), seed_, context.state.phase_index, context.state.batch_in_phase)
          .to(images.device());
  const at::Tensor own = order.narrow(0, communicator.rank() * images.size(0), images.size(0));
  SSL_ASSIGN_OR_RETURN(const at::Tensor shuffled, EncodeAll(all_images.index_select(0, own), communicator));
  at::Tensor keys = at::empty_like(shuffled);
  return keys.index_copy_(0, order, shuffled);
}

absl::Status MocoMethod::ComputeLoss(StepContext& context) {
  SSL_RET_CHECK(!context.outputs.empty() && keys_.defined(), "Forward sets queries and keys");
  const at::Tensor& query = context.outputs.front();
  if (query.dim() != 2 || query.size(1) != options_.embedding_dim) {
    return absl::InvalidArgumentError(absl::StrCat("embeddings have shape [", absl::StrJoin(query.sizes(), ", "),
                                                   "], expected [", context.batch->size(), ", ", options_.embedding_dim,
                                                   "] (config.LOSS.moco_loss.embedding_dim)"));
  }
  const at::Tensor own_keys = keys_.narrow(0, context.communicator.rank() * query.size(0), query.size(0));
  SSL_ASSIGN_OR_RETURN(context.loss, MocoLoss(query, own_keys, queue_.rows(), options_.temperature));
  return absl::OkStatus();
}

absl::Status MocoMethod::Advance(StepContext& context) {
  queue_.Enqueue(keys_);
  return absl::OkStatus();
}

void MocoMethod::VisitState(StateVisitor& visitor) {
  visitor.Scope("encoder", *encoder_);
  queue_.VisitState(visitor);
}

}  // namespace ssl
