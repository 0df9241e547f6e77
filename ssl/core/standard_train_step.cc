// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/checkpoint_store.cc, how the result is kept.
#include "ssl/core/standard_train_step.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/step_context.h"

namespace ssl {
namespace {

// Forward and loss share one autocast scope, so that a parameter is converted once per step.
absl::Status ForwardAndLoss(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  const AutocastScope autocast(task.options().precision.autocast);
  SSL_RETURN_IF_ERROR(GuardTorch("forward", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kForward);
    return task.method().Forward(context);
  }));
  SSL_RETURN_IF_ERROR(hooks.Run(&Hook::OnForward, context));
  SSL_RETURN_IF_ERROR(GuardTorch("loss", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kLossCompute);
    return task.method().ComputeLoss(context);
  }));
  SSL_RETURN_IF_ERROR(GuardTorch("meters", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kMetersUpdate);
    return task.UpdateMeters(context);
  }));
  return hooks.Run(&Hook::OnLossAndMeter, context);
}

absl::Status Backward(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("backward", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kBackward);
    if (context.micro_batch == 0) task.optimizer().ZeroGrad();
    at::Tensor objective = context.loss;
    if (context.micro_batches > 1) objective = objective.div(context.micro_batches);
    if (task.grad_scaler() != nullptr) objective = task.grad_scaler()->Scale(objective);
    objective.backward();
    context.loss = context.loss.detach();
    return absl::OkStatus();
  });
}

// Averages gradients over the ranks.
absl::Status ReduceGradients(SelfSupervisionTask& task, StepContext& context) {
  const PerfTimer timer(&context.perf_stats, StepPart::kReduceGradients);
  for (ParameterGroup& group : task.optimizer().groups()) {
    for (at::Tensor& parameter : group.parameters) {
      if (!parameter.grad().defined()) continue;
      SSL_RETURN_IF_ERROR(context.communicator.AllReduce(parameter.mutable_grad(), ReduceOp::kMean));
    }
  }
  return absl::OkStatus();
}

// True when all gradients are finite; a loss scale is taken out of them.
absl::StatusOr<bool> UnscaleGradients(SelfSupervisionTask& task, StepContext& context) {
  if (task.grad_scaler() == nullptr) return true;
  return task.grad_scaler()->Unscale(task.optimizer().groups(), context.communicator);
}

// Gradients that overflowed change nothing but the loss scale.
absl::Status Update(SelfSupervisionTask& task, StepContext& context, bool finite) {
  return GuardTorch("optimizer step", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kOptimizerStep);
    const c10::AutoGradMode no_gradients(false);
    if (finite) task.optimizer().Step();
    if (task.grad_scaler() != nullptr) task.grad_scaler()->Update();
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status StandardTrainStep::Train(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
  SSL_RETURN_IF_ERROR(Backward(task, context));
  if (context.micro_batch + 1 < context.micro_batches) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
  SSL_ASSIGN_OR_RETURN(const bool finite, UnscaleGradients(task, context));
  SSL_RETURN_IF_ERROR(hooks.Run(&Hook::OnBackward, context));
  task.UpdateSchedules(Schedule::UpdateInterval::kStep);
  SSL_RETURN_IF_ERROR(Update(task, context, finite));
  return hooks.Run(&Hook::OnUpdate, context);
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
