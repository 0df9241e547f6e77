// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_hooks.h"

#include <string>

#include "ssl/base/log.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/swav/swav_method.h"

namespace ssl {

absl::Status SwavQueueHook::OnForward(StepContext& context) {
  if (context.state.training) method_->UpdateQueueScores();
  return absl::OkStatus();
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
