// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/checkpoint_store.cc, how the result is kept.
#include "ssl/core/step_verbs.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstdint>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/step_context.h"

namespace ssl {
namespace {

// With an update's first batch, and once for a test phase, in which buffers stay as they are.
absl::Status BroadcastBuffers(SelfSupervisionTask& task, StepContext& context) {
  const int64_t before = context.state.training ? context.batch_in_update : context.state.batch_in_phase;
  if (before > 0 || !task.options().replicas.broadcast_buffers) return absl::OkStatus();
  return GuardTorch("broadcasting buffers", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kForward);
    return task.buffer_broadcast().Run();
  });
}

absl::Status Forward(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("forward", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kForward);
    return task.method().Forward(context);
  });
}

absl::Status ComputeLoss(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("loss", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kLossCompute);
    return task.method().ComputeLoss(context);
  });
}

}  // namespace

absl::Status ForwardAndLoss(SelfSupervisionTask& task, HookList& hooks, StepContext& context, MeterUse meters) {
  // One scope for both, so that a parameter is converted once per batch.
  const AutocastScope autocast(task.options().precision.autocast);
  SSL_RETURN_IF_ERROR(BroadcastBuffers(task, context));
  SSL_RETURN_IF_ERROR(Forward(task, context));
  SSL_RETURN_IF_ERROR(hooks.Run(kOnForward, context));
  SSL_RETURN_IF_ERROR(ComputeLoss(task, context));
  if (meters == MeterUse::kMeasure) {
    SSL_RETURN_IF_ERROR(GuardTorch("meters", [&] {
      const PerfTimer timer(&context.perf_stats, StepPart::kMetersUpdate);
      return task.UpdateMeters(context);
    }));
  }
  return hooks.Run(kOnLossAndMeter, context);
}

absl::Status RepeatForwardAndLoss(SelfSupervisionTask& task, StepContext& context) {
  const AutocastScope autocast(task.options().precision.autocast);
  SSL_RETURN_IF_ERROR(Forward(task, context));
  return ComputeLoss(task, context);
}

absl::Status Backward(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("backward", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kBackward);
    at::Tensor objective = context.loss;
    if (context.batches_per_update > 1) objective = objective.div(context.batches_per_update);
    if (task.grad_scaler() != nullptr) objective = task.grad_scaler()->Scale(objective);
    objective.backward();
    // What stays of a batch keeps no graph: a later one would share its nodes, and these belong to the stream of this
    // one, which a recording on another stream must not touch.
    context.loss = context.loss.detach();
    for (at::Tensor& output : context.outputs) {
      if (output.defined()) output = output.detach();
    }
    return absl::OkStatus();
  });
}

bool EndsUpdate(const StepContext& context) { return context.batch_in_update + 1 == context.batches_per_update; }

absl::Status ReduceGradients(SelfSupervisionTask& task, StepContext& context) {
  return GuardTorch("reducing gradients", [&] {
    const PerfTimer timer(&context.perf_stats, StepPart::kReduceGradients);
    return task.gradient_reducer().Reduce();
  });
}

absl::Status BackwardAndReduceGradients(SelfSupervisionTask& task, StepContext& context) {
  if (!EndsUpdate(context)) return Backward(task, context);
  SSL_RETURN_IF_ERROR(GuardTorch("reducing gradients", [&] { return task.gradient_reducer().StartWithBackward(); }));
  SSL_RETURN_IF_ERROR(Backward(task, context));
  return ReduceGradients(task, context);
}

absl::Status UnscaleGradients(SelfSupervisionTask& task, StepContext& context) {
  if (task.grad_scaler() == nullptr) return absl::OkStatus();
  return GuardTorch("unscaling gradients", [&] {
    context.found_inf = task.grad_scaler()->Unscale(task.optimizer().groups());
    return absl::OkStatus();
  });
}

absl::Status Update(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  SSL_RETURN_IF_ERROR(hooks.Run(kOnBackward, context));
  task.UpdateSchedules(Schedule::UpdateInterval::kStep);
  SSL_RETURN_IF_ERROR(GuardTorch("optimizer step", [&]() -> absl::Status {
    const PerfTimer timer(&context.perf_stats, StepPart::kOptimizerStep);
    const c10::AutoGradMode no_gradients(false);
    task.optimizer().Step(context.found_inf);
    SSL_RETURN_IF_ERROR(task.optimizer().GatherUpdates());
    if (task.grad_scaler() != nullptr && context.found_inf.defined()) task.grad_scaler()->Update();
    return absl::OkStatus();
  }));
  return hooks.Run(kOnUpdate, context);
}

absl::Status TrainOnBatch(SelfSupervisionTask& task, HookList& hooks, StepContext& context, MeterUse meters) {
  SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context, meters));
  SSL_RETURN_IF_ERROR(BackwardAndReduceGradients(task, context));
  if (!EndsUpdate(context)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
  return Update(task, hooks, context);
}

}  // namespace ssl
