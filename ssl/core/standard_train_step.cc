// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/step_verbs.cc, what each of the verbs does.
#include "ssl/core/standard_train_step.h"

#include <c10/core/GradMode.h>

#include "ssl/base/status_macros.h"
#include "ssl/core/step_context.h"
#include "ssl/core/step_verbs.h"

namespace ssl {

absl::Status StandardTrainStep::Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                                      StepContext& context) {
  for (int64_t batch = 0; batch < context.batches_per_update; ++batch) {
    SSL_RETURN_IF_ERROR(batches.Next());
    SSL_RETURN_IF_ERROR(TrainOnBatch(task, hooks, context));
    SSL_RETURN_IF_ERROR(batches.Finish());
  }
  return absl::OkStatus();
}

absl::Status StandardTrainStep::Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  const c10::AutoGradMode no_gradients(false);
  return ForwardAndLoss(task, hooks, context);
}

absl::StatusOr<std::unique_ptr<TrainStep>> MakeStandardTrainStep(const ConfigNode& params,
                                                                 const BuildContext& context) {
  return std::make_unique<StandardTrainStep>();
}

}  // namespace ssl
