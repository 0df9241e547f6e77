// SPDX-License-Identifier: Apache-2.0
//
// "standard_train_step": one optimizer update, and one evaluation step: the verbs of training in their order.
#ifndef SSL_CORE_STANDARD_TRAIN_STEP_H_
#define SSL_CORE_STANDARD_TRAIN_STEP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/registries.h"
#include "ssl/core/train_step.h"

namespace ssl {

// Forward, loss, meters, backward, gradient reduction, update; the events of Hook in between.
class StandardTrainStep : public TrainStep {
 public:
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches, StepContext& context) override;
  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override;
};

// Of the type of a factory in Registries::train_steps.
absl::StatusOr<std::unique_ptr<TrainStep>> MakeStandardTrainStep(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_CORE_STANDARD_TRAIN_STEP_H_
