// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_hooks.h"

#include <string>
#include <vector>

#include "ssl/base/log.h"
#include "ssl/core/cadence.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/swav/swav_method.h"

namespace ssl {
namespace {

constexpr Cadence kEachUpdate = {Cadence::Unit::kUpdate, 1, 1, 0, false};

}  // namespace

std::vector<PlannedAction> SwavQueueHook::Plan() const {
  return {{"scores the queued embeddings, once there are some", kEachUpdate}};
}

absl::Status SwavQueueHook::OnBatchStart(StepContext& context) {
  if (context.state.training && context.batch_in_update == 0) method_->BeginUpdate();
  return absl::OkStatus();
}

absl::Status SwavQueueHook::OnForward(StepContext& context) {
  if (context.state.training) method_->UpdateQueueScores();
  return absl::OkStatus();
}

absl::Status SwavQueueHook::OnStep(StepContext& context) {
  if (context.state.training) method_->EndUpdate(context.batches_per_update);
  return absl::OkStatus();
}

std::vector<PlannedAction> NormalizePrototypesHook::Plan() const {
  return {{"brings the prototypes back to unit length", kEachUpdate}};
}

absl::Status NormalizePrototypesHook::OnUpdate(StepContext&) {
  method_->NormalizePrototypes();
  return absl::OkStatus();
}

absl::Status SwavFailureReportHook::OnException(StepContext& context, const absl::Status&) {
  const std::string description = method_->DescribeNonFinite(context.outputs);
  if (!description.empty()) {
    SSL_LOG(ERROR) << "SwAV at iteration " << context.state.iteration << " on rank " << context.communicator.rank()
                   << ": " << description;
  }
  return absl::OkStatus();
}

}  // namespace ssl
