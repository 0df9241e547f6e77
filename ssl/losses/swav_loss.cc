// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/swav_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sum.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

absl::Status CheckOptions(const SwavLossOptions& options) {
  if (options.num_crops < 2 || options.crops_for_assign.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("num_crops is ", options.num_crops, " with ",
                                                   options.crops_for_assign.size(),
                                                   " crops_for_assign; expected at least 2 crops and 1 to assign"));
  }
  for (const int64_t crop : options.crops_for_assign) {
    if (crop < 0 || crop >= options.num_crops) {
      return absl::InvalidArgumentError(
          absl::StrCat("crops_for_assign holds ", crop, ", expected crops from 0 to ", options.num_crops - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const std::vector<at::Tensor>& scores, const std::vector<at::Tensor>& queue_scores,
                         const SwavLossOptions& options) {
  if (scores.empty() || (!queue_scores.empty() && queue_scores.size() != scores.size())) {
    return absl::InvalidArgumentError(absl::StrCat("scores of ", scores.size(), " heads and queue scores of ",
                                                   queue_scores.size(), ", expected as many (or no queue)"));
  }
  for (size_t head = 0; head < scores.size(); ++head) {
    const at::Tensor& rows = scores[head];
    if (rows.dim() != 2 || rows.size(0) == 0 || rows.size(0) % options.num_crops != 0) {
      return absl::InvalidArgumentError(absl::StrCat("scores of head ", head, " have shape [",
                                                     absl::StrJoin(rows.sizes(), ", "), "], expected a multiple of ",
                                                     options.num_crops, " (num_crops) rows"));
    }
    if (queue_scores.empty()) continue;
    const at::Tensor& queue = queue_scores[head];
    if (queue.dim() != 3 || queue.size(0) != static_cast<int64_t>(options.crops_for_assign.size()) ||
        queue.size(2) != rows.size(1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("queue scores of head ", head, " have shape [", absl::StrJoin(queue.sizes(), ", "),
                       "], expected [", options.crops_for_assign.size(), ", queue length, ", rows.size(1), "]"));
    }
  }
  return absl::OkStatus();
}

// scores: [V, B, K]; queue: undefined or [A, L, K]. Returns [A, B, K].
absl::StatusOr<at::Tensor> Assign(const at::Tensor& scores, const at::Tensor& queue, const SwavLossOptions& options,
                                  Communicator& communicator) {
  const at::NoGradGuard no_grad;
  at::Tensor rows = SelectEntries(scores, options.crops_for_assign);
  if (queue.defined()) rows = at::cat({rows, queue.to(rows.scalar_type())}, 1);
  SSL_ASSIGN_OR_RETURN(const at::Tensor assignments, SinkhornAssignments(rows, options.sinkhorn, communicator));
  return assignments.narrow(1, 0, scores.size(1));
}

// [V, B, K]: what multiplies -log softmax of each crop: the assignments of all other crops.
at::Tensor TargetsOfCrops(const at::Tensor& assignments, const SwavLossOptions& options) {
  const at::NoGradGuard no_grad;
  at::Tensor targets = assignments.sum(0, /*keepdim=*/true)
                           .expand({options.num_crops, assignments.size(1), assignments.size(2)})
                           .clone(at::MemoryFormat::Contiguous);
  for (size_t i = 0; i < options.crops_for_assign.size(); ++i) {
    targets.select(0, options.crops_for_assign[i]).sub_(assignments.select(0, static_cast<int64_t>(i)));
  }
  return targets;
}

}  // namespace

absl::StatusOr<SwavLossResult> SwavLoss(const std::vector<at::Tensor>& scores,
                                        const std::vector<at::Tensor>& queue_scores, const SwavLossOptions& options,
                                        Communicator& communicator) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_RETURN_IF_ERROR(CheckShapes(scores, queue_scores, options));
  SwavLossResult result;
  for (size_t head = 0; head < scores.size(); ++head) {
    const int64_t batch_size = scores[head].size(0) / options.num_crops;
    const at::Tensor rows = scores[head].to(at::kFloat);  // [V*B, K]
    const at::Tensor crops = rows.detach().view({options.num_crops, batch_size, rows.size(1)});
    SSL_ASSIGN_OR_RETURN(at::Tensor assignments, Assign(crops, queue_scores.empty() ? at::Tensor() : queue_scores[head],
                                                        options, communicator));
    // sum over c and p != c of <q_c, log p_p> = sum over p of <sum over c != p of q_c, log p_p>: one product.
    const at::Tensor targets = TargetsOfCrops(assignments, options).view_as(rows);
    const double terms = static_cast<double>(scores.size()) * static_cast<double>(options.crops_for_assign.size()) *
                         static_cast<double>(options.num_crops - 1) * static_cast<double>(batch_size);
    const at::Tensor head_loss = (targets * at::log_softmax(rows / options.temperature, 1)).sum() / -terms;
    result.loss = result.loss.defined() ? result.loss + head_loss : head_loss;
    result.assignments.push_back(std::move(assignments));
  }
  return result;
}

}  // namespace ssl
