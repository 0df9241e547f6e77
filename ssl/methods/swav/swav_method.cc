// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_method.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mm.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/message_place.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/losses/scores.h"
#include "ssl/losses/swav_loss.h"
#include "ssl/methods/swav/swav_hooks.h"

namespace ssl {
namespace {

constexpr double kNormEps = 1e-12;  // as torch.nn.functional.normalize

// L: whole global batches, divided among the ranks.
int64_t LocalQueueLength(int64_t queue_length, int64_t batch_size, int64_t world_size) {
  const int64_t global_batch = std::max<int64_t>(1, batch_size * world_size);
  return (queue_length - queue_length % global_batch) / world_size;
}

bool IsPrototypeWeight(const std::string& name, size_t head) {
  const std::string suffix = absl::StrCat("prototypes", head, ".weight");
  return name == suffix || absl::EndsWith(name, "." + suffix);
}

int64_t CountNonFinite(const at::Tensor& values) { return values.numel() - at::isfinite(values).sum().item<int64_t>(); }

// Appends "<what> of crop 3, head 0: 12 of 3840 values are not finite" for each crop that has any.
void DescribeCrops(absl::string_view what, const at::Tensor& crops, const std::vector<int64_t>& crop_numbers,
                   size_t head, std::vector<std::string>* lines) {
  for (size_t i = 0; i < crop_numbers.size(); ++i) {
    const at::Tensor values = crops[static_cast<int64_t>(i)];
    const int64_t count = CountNonFinite(values);
    if (count == 0) continue;
    lines->push_back(absl::StrCat(what, " of crop ", crop_numbers[i], ", head ", head, ": ", count, " of ",
                                  values.numel(), " values are not finite"));
  }
}

}  // namespace

SwavMethod::SwavMethod(const SwavOptions& options, int64_t seed, ConfigNode root)
    : options_(options), seed_(seed), root_(std::move(root)) {}

absl::Status SwavMethod::Prepare(StepContext& context) {
  SSL_RETURN_IF_ERROR(FindPrototypes(context.model));
  const int64_t world_size = context.communicator.size();
  const int64_t queue_length = LocalQueueLength(options_.queue.queue_length, context.batch_size, world_size);
  WarnAboutQueue(context, queue_length * world_size);
  if (queue_length > 0) MakeQueue(queue_length, context.communicator.rank());
  WarnAboutPrototypes(context.batch_size, queue_length, world_size);
  return absl::OkStatus();
}

absl::Status SwavMethod::FindPrototypes(Model& model) {
  prototypes_.clear();
  shards_ = model.parameter_shards();
  const std::vector<NamedParameter> parameters = model.Parameters();
  for (size_t head = 0; head < options_.num_prototypes.size(); ++head) {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [head](const NamedParameter& parameter) {
      return IsPrototypeWeight(parameter.name, head);
    });
    if (found == parameters.end()) {
      return absl::NotFoundError(absl::StrCat("model has no trainable parameter named '...prototypes", head,
                                              ".weight', which swav_loss needs (config.MODEL.HEAD.PARAMS: swav_head",
                                              " with ", options_.num_prototypes.size(), " num_clusters)"));
    }
    const int64_t rows = shards_ != nullptr ? shards_->WholeRows(found->value) : found->value.size(0);
    if (rows != options_.num_prototypes[head]) {
      return absl::InvalidArgumentError(absl::StrCat("config.LOSS.swav_loss.num_prototypes[", head, "] is ",
                                                     options_.num_prototypes[head], ", the model's ", found->name,
                                                     " has ", rows, " rows"));
    }
    prototypes_.push_back(found->value);
  }
  return absl::OkStatus();
}

void SwavMethod::MakeQueue(int64_t local_length, int64_t rank) {
  const int64_t num_assign = static_cast<int64_t>(options_.crops_for_assign.size());
  const at::TensorOptions options = prototypes_.front().options().dtype(at::kFloat).requires_grad(false);
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed_ + rank));
  // Drawn on the CPU, so that every device starts with the same values.
  const auto draw = [&](int64_t width, double bound) {
    return at::empty({num_assign, local_length, width}, at::kFloat).uniform_(-bound, bound, generator).to(options);
  };
  queue_scores_.clear();
  for (const int64_t clusters : options_.num_prototypes) queue_scores_.push_back(draw(clusters, 1.0));
  queue_embeddings_ = draw(options_.embedding_dim, 1.0 / std::sqrt(static_cast<double>(options_.embedding_dim) / 3.0));
}

void SwavMethod::WarnAboutQueue(const StepContext& context, int64_t length) const {
  const SwavQueueOptions& queue = options_.queue;
  const int64_t batches = context.state.max_iterations * context.state.batches_per_update;
  const std::string length_is = absl::StrCat("config.LOSS.swav_loss.queue.queue_length is ", queue.queue_length, ", ");
  std::string warning;
  if (length == 0 && queue.queue_length > 0) {
    warning = absl::StrCat(length_is, "less than the ", context.batch_size * context.communicator.size(),
                           " images of a batch over all ranks: no queue is kept");
  } else if (length > 0 && batches > 0 && queue.start_iter >= batches) {
    warning = absl::StrCat("config.LOSS.swav_loss.queue.start_iter is ", queue.start_iter, ", expected less than ",
                           batches, ", the batches of the whole training: the queue has no effect");
  } else if (context.num_train_samples > 0 && length > context.num_train_samples) {
    warning = absl::StrCat(length_is, "more than the ", context.num_train_samples,
                           " images of the training set: it holds some of them several times");
  }
  if (!warning.empty()) SSL_LOG(WARNING) << WithPlaceOfKey(warning, root_);
}

void SwavMethod::WarnAboutPrototypes(int64_t batch_size, int64_t local_queue_length, int64_t world_size) const {
  const int64_t rows = (batch_size + local_queue_length) * world_size;
  const int64_t most = *std::max_element(options_.num_prototypes.begin(), options_.num_prototypes.end());
  if (most <= rows) return;
  SSL_LOG(WARNING) << "config.LOSS.swav_loss.num_prototypes is " << most << ", but only " << rows
                   << " images are balanced over them at a time (config.DATA.TRAIN.BATCHSIZE_PER_REPLICA " << batch_size
                   << " x " << world_size << " ranks, and " << local_queue_length * world_size
                   << " in the queue): most prototypes get less than one image, and assignments turn to noise. Use at "
                   << "most " << rows << " num_clusters in config.MODEL.HEAD.PARAMS, larger batches, or "
                   << "config.LOSS.swav_loss.queue.queue_length of at least " << most - batch_size * world_size;
}

absl::Status SwavMethod::CheckOutputs(const StepContext& context) const {
  const std::vector<at::Tensor>& outputs = context.outputs;
  if (outputs.size() != 1 + options_.num_prototypes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("model returned ", outputs.size(), " outputs, swav_loss expects 1 ",
                                                   "+ ", options_.num_prototypes.size(), ": embeddings and scores"));
  }
  if (context.batch != nullptr && static_cast<int64_t>(context.batch->views.size()) != options_.num_crops) {
    return absl::InvalidArgumentError(absl::StrCat("batch has ", context.batch->views.size(),
                                                   " views, config.LOSS.swav_loss.num_crops is ", options_.num_crops));
  }
  if (outputs[0].dim() != 2 || outputs[0].size(1) != options_.embedding_dim ||
      outputs[0].size(0) != outputs[1].size(0)) {
    return absl::InvalidArgumentError(absl::StrCat("embeddings have shape [", absl::StrJoin(outputs[0].sizes(), ", "),
                                                   "], expected [", outputs[1].size(0), ", ", options_.embedding_dim,
                                                   "] (config.LOSS.swav_loss.embedding_dim)"));
  }
  return absl::OkStatus();
}

absl::Status SwavMethod::ComputeLoss(StepContext& context) {
  SSL_RETURN_IF_ERROR(CheckOutputs(context));
  SwavLossOptions loss_options;
  loss_options.temperature = options_.temperature;
  loss_options.num_crops = options_.num_crops;
  loss_options.crops_for_assign = options_.crops_for_assign;
  loss_options.sinkhorn.epsilon = options_.epsilon;
  loss_options.sinkhorn.num_iters = options_.num_iters;
  loss_options.sinkhorn.double_precision = options_.use_double_precision;
  loss_options.sinkhorn.powerlaw = options_.shk_powerlaw;
  loss_options.sinkhorn.hard = iteration_ < options_.temp_hard_assignment_iters;

  const std::vector<at::Tensor> scores(context.outputs.begin() + 1, context.outputs.end());
  const bool use_queue = QueueIsDue(iteration_);
  const std::vector<at::Tensor> no_queue;
  SSL_ASSIGN_OR_RETURN(SwavLossResult result,
                       SwavLoss(scores, use_queue ? queue_scores_ : no_queue, loss_options, context.communicator));
  context.loss = std::move(result.loss);
  assignments_ = std::move(result.assignments);
  return absl::OkStatus();
}

bool SwavMethod::QueueIsDue(int64_t iteration) const {
  return queue_embeddings_.defined() && iteration >= options_.queue.start_iter;
}

std::optional<int64_t> SwavMethod::RecordingKey(const StepContext& context) const {
  const int64_t batches = context.batches_per_update;
  int64_t with_queue = 0;
  int64_t with_hard_assignments = 0;
  for (int64_t iteration = iteration_; iteration < iteration_ + batches; ++iteration) {
    with_queue += QueueIsDue(iteration) ? 1 : 0;
    with_hard_assignments += iteration < options_.temp_hard_assignment_iters ? 1 : 0;
  }
  return (with_queue * (batches + 1) + with_hard_assignments) * 2 + uses_queue_;
}

void SwavMethod::EndUpdate(int64_t batches) {
  iteration_ = begin_of_update_ + batches;
  uses_queue_ = QueueIsDue(iteration_ - 1) ? 1 : 0;
}

absl::Status SwavMethod::Advance(StepContext& context) {
  const bool used_queue = QueueIsDue(iteration_);
  if (used_queue) Enqueue(context.outputs[0]);
  uses_queue_ = used_queue ? 1 : 0;
  ++iteration_;
  return absl::OkStatus();
}

void SwavMethod::Enqueue(const at::Tensor& embeddings) {
  const at::NoGradGuard no_grad;
  const at::Tensor crops = embeddings.detach().view({options_.num_crops, -1, options_.embedding_dim});
  const at::Tensor newest = SelectEntries(crops, options_.crops_for_assign).to(at::kFloat);
  const int64_t length = queue_embeddings_.size(1);
  const at::Tensor kept = queue_embeddings_.narrow(1, 0, std::max<int64_t>(0, length - newest.size(1)));
  // In place: a recorded update goes on with this memory.
  queue_embeddings_.copy_(at::cat({newest, kept}, 1).narrow(1, 0, length));
}

void SwavMethod::UpdateQueueScores() {
  if (uses_queue_ == 0) return;
  const at::NoGradGuard no_grad;
  // Float32 like the head's scores, which they are balanced with: this is state, and the step's autocast would round it
  // and change its type.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  for (size_t head = 0; head < prototypes_.size(); ++head) {
    const at::Tensor& own = prototypes_[head];
    const at::Tensor weight = shards_ != nullptr ? shards_->Whole(own, shards_->WholeRows(own)) : own;
    at::Tensor scores = queue_scores_[head].flatten(0, 1);  // in place, as the embeddings
    at::mm_out(scores, queue_embeddings_.flatten(0, 1), weight.t());
  }
}

void SwavMethod::NormalizePrototypes() {
  if (!options_.normalize_last_layer) return;
  const at::NoGradGuard no_grad;
  for (at::Tensor& weight : prototypes_) weight.div_(weight.norm(2, 1, /*keepdim=*/true).clamp_min(kNormEps));
}

std::string SwavMethod::DescribeNonFinite(const std::vector<at::Tensor>& outputs) const {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> all_crops;
  for (int64_t crop = 0; crop < options_.num_crops; ++crop) all_crops.push_back(crop);
  std::vector<std::string> lines;
  for (size_t head = 0; head + 1 < outputs.size(); ++head) {
    const at::Tensor& scores = outputs[head + 1];
    if (scores.dim() != 2 || scores.size(0) % options_.num_crops != 0) continue;
    DescribeCrops("scores", scores.detach().view({options_.num_crops, -1, scores.size(1)}), all_crops, head, &lines);
  }
  for (size_t head = 0; head < assignments_.size(); ++head) {
    DescribeCrops("assignments", assignments_[head], options_.crops_for_assign, head, &lines);
  }
  return absl::StrJoin(lines, "; ");
}

std::vector<std::unique_ptr<Hook>> SwavMethod::MakeHooks() {
  std::vector<std::unique_ptr<Hook>> hooks;
  hooks.push_back(std::make_unique<SwavQueueHook>(this));
  hooks.push_back(std::make_unique<NormalizePrototypesHook>(this));
  hooks.push_back(std::make_unique<SwavFailureReportHook>(this));
  return hooks;
}

void SwavMethod::VisitState(StateVisitor& visitor) {
  visitor.Int("iteration", iteration_);
  if (!queue_embeddings_.defined()) return;
  visitor.Int("uses_queue", uses_queue_);
  // Dealt out like the samples that it holds, so that it stays in the order of the batches.
  constexpr int64_t kRows = 1;
  visitor.Tensor("queue_embeddings", queue_embeddings_);
  visitor.RanksDiffer("queue_embeddings", RankValues::kDealRows, kRows);
  for (size_t head = 0; head < queue_scores_.size(); ++head) {
    const std::string name = absl::StrCat("queue_scores", head);
    visitor.Tensor(name, queue_scores_[head]);
    visitor.RanksDiffer(name, RankValues::kDealRows, kRows);
  }
}

}  // namespace ssl
