// SPDX-License-Identifier: Apache-2.0
//
// One optimizer update, and one evaluation step: the verbs of training in their order.
#ifndef SSL_CORE_TRAIN_STEP_H_
#define SSL_CORE_TRAIN_STEP_H_

#include "absl/status/status.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Trains on context.batch: forward, loss, backward, gradient reduction, update. Events in between reach `hooks`.
// Does not advance the counters. LibTorch's exceptions become a Status.
absl::Status StandardTrainStep(SelfSupervisionTask& task, HookList& hooks, StepContext& context);

// Forward and loss on context.batch, without gradients.
absl::Status StandardTestStep(SelfSupervisionTask& task, HookList& hooks, StepContext& context);

}  // namespace ssl

#endif  // SSL_CORE_TRAIN_STEP_H_
