// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/checkpoint_store.cc, how the result is kept.
#include "ssl/core/train_step.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"

namespace ssl {
namespace {

// Forward and loss share one autocast scope, so that a parameter is converted once per step.
absl::Status ForwardAndLoss(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  const AutocastScope autocast(task.options().use_autocast);
  SSL_RETURN_IF_ERROR(GuardTorch("forward", [&] { return task.method().Forward(context); }));
  SSL_RETURN_IF_ERROR(hooks.Run(&Hook::OnForward, context));
  SSL_RETURN_IF_ERROR(GuardTorch("loss", [&] { return task.method().ComputeLoss(context); }));
  return hooks.Run(&Hook::OnLossAndMeter, context);
}

absl::Status Backward(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("backward", [&] {
    task.optimizer().ZeroGrad();
    context.loss.backward();
    context.loss = context.loss.detach();
    return absl::OkStatus();
  });
}

// Averages gradients over the ranks.
absl::Status ReduceGradients(SelfSupervisionTask& task, StepContext& context) {
  for (ParameterGroup& group : task.optimizer().groups()) {
    for (at::Tensor& parameter : group.parameters) {
      if (!parameter.grad().defined()) continue;
      SSL_RETURN_IF_ERROR(context.communicator.AllReduce(parameter.mutable_grad(), ReduceOp::kMean));
    }
  }
  return absl::OkStatus();
}

absl::Status Update(SelfSupervisionTask& task) {
  return GuardTorch("optimizer step", [&] {
    const c10::AutoGradMode no_gradients(false);
    task.optimizer().Step();
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status StandardTrainStep(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
  SSL_RETURN_IF_ERROR(Backward(task, context));
  SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
  SSL_RETURN_IF_ERROR(hooks.Run(&Hook::OnBackward, context));
  task.UpdateLearningRate(Schedule::UpdateInterval::kStep);
  SSL_RETURN_IF_ERROR(Update(task));
  return hooks.Run(&Hook::OnUpdate, context);
}

absl::Status StandardTestStep(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  const c10::AutoGradMode no_gradients(false);
  return ForwardAndLoss(task, hooks, context);
}

}  // namespace ssl
