// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/skipped_updates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/distributed/agree.h"

namespace ssl {

absl::Status CheckSkippedUpdates(SelfSupervisionTask& task, int64_t updates) {
  if (task.grad_scaler() == nullptr) return absl::OkStatus();
  const int64_t allowed = task.options().precision.max_skipped_updates;
  return GuardTorch("reading the loss scale", [&]() -> absl::Status {
    const int64_t skipped = task.grad_scaler()->skipped_updates();
    if (skipped < std::min(allowed, task.state().max_iterations)) return absl::OkStatus();
    return absl::OutOfRangeError(absl::StrCat(
        "float16 gradients overflowed in ", skipped, " updates in a row, so no weight has changed since iteration ",
        updates - skipped, "; the loss scale is ", task.grad_scaler()->scale(),
        " now. Lower the learning rate or the loss's magnitude, give a smaller constant "
        "config.MODEL.AMP_PARAMS.AMP_ARGS.loss_scale, or compute with config.MODEL.AMP_PARAMS.AMP_DTYPE=bfloat16 "
        "(config.MODEL.AMP_PARAMS.MAX_SKIPPED_UPDATES is ",
        allowed, ")"));
  });
}

absl::Status WatchSkippedUpdates(SelfSupervisionTask& task, Communicator& communicator) {
  const int64_t updates = task.state().iteration + 1;
  const bool is_due = updates % task.options().run.log_frequency == 0 || updates == task.state().max_iterations;
  if (!task.device().is_cpu() && !is_due) return absl::OkStatus();
  const absl::Status status = CheckSkippedUpdates(task, updates);
  return status.ok() ? status : AgreeOnStatus(status, "watching the loss scale", communicator);
}

}  // namespace ssl
