// SPDX-License-Identifier: Apache-2.0
//
// The verbs that train steps are made of. A step of a host's own that uses them keeps the run's number format, gradient
// accumulation, loss scale, reduction over ranks, schedules and hooks. StandardTrainStep::Train, for each batch
// of an update:
//
//   SSL_RETURN_IF_ERROR(batches.Next());
//   SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
//   SSL_RETURN_IF_ERROR(BackwardAndReduceGradients(task, context));
//   if (EndsUpdate(context)) {     // the last one
//     SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
//     SSL_RETURN_IF_ERROR(Update(task, hooks, context));
//   }
//   SSL_RETURN_IF_ERROR(batches.Finish());
//
// A step with several backward passes for a batch, or one that looks at this rank's own gradients, calls Backward and,
// where EndsUpdate, ReduceGradients instead.
//
// TrainOnBatch is what stands there between Next and Finish.
//
// Every rank calls the same verbs in the same order. LibTorch's exceptions become a Status. examples/embed has a step
// that goes through each batch twice.
//
// What a method remembers between batches (queues, counters) moves on in batches.Finish(): once, however often the step
// computed the batch's loss. Running statistics of batch normalisation see each forward pass.
#ifndef SSL_CORE_STEP_VERBS_H_
#define SSL_CORE_STEP_VERBS_H_

#include "absl/status/status.h"

namespace ssl {

class HookList;
class SelfSupervisionTask;
struct StepContext;

// kLeaveOut: for what is recorded, since meters count on the host.
enum class MeterUse { kMeasure, kLeaveOut };

// Sets context.outputs and context.loss from context.batch, in the run's number format, and measures the outputs.
// Events: OnForward, OnLossAndMeter. Once for each batch. With the first batch of an update or test phase, the model's
// buffers become rank 0's before (DISTRIBUTED.BROADCAST_BUFFERS).
absl::Status ForwardAndLoss(SelfSupervisionTask& task, HookList& hooks, StepContext& context,
                            MeterUse meters = MeterUse::kMeasure);

// Sets the two again, with the weights as they are now. No events, no meters.
absl::Status RepeatForwardAndLoss(SelfSupervisionTask& task, StepContext& context);

// Adds the gradients of context.loss, divided by the update's number of batches and times the loss scale, to those that
// the parameters have; the trainer drops them before each update's first batch. Leaves context.loss and
// context.outputs without their graph.
absl::Status Backward(SelfSupervisionTask& task, StepContext& context);

// True with the last batch of an update.
bool EndsUpdate(const StepContext& context);

// Gradients become their mean over all ranks (ssl/core/gradient_reducer.h: what becomes of those that some ranks lack).
// They are other tensors then: handles of those before still have this rank's own.
absl::Status ReduceGradients(SelfSupervisionTask& task, StepContext& context);

// Backward, and with the last batch of an update ReduceGradients at the same time: the gradients of later layers are
// reduced while backward computes those of earlier ones. Each gradient has to be complete when backward first adds to
// it, as it is unless a part of the graph runs a backward pass of its own.
absl::Status BackwardAndReduceGradients(SelfSupervisionTask& task, StepContext& context);

// Takes the loss scale out of the reduced gradients and sets context.found_inf, on the device: 1 when a gradient of any
// rank overflowed in float16, 0 when none did. Without a loss scale it does nothing. Ranks need not tell each other: an
// overflow of one has reached all by the reduction.
absl::Status UnscaleGradients(SelfSupervisionTask& task, StepContext& context);

// OnBackward; then learning rates and weight decays by the schedules, the optimizer's step, which changes nothing where
// gradients overflowed, and the loss scale's adaptation; then OnUpdate.
absl::Status Update(SelfSupervisionTask& task, HookList& hooks, StepContext& context);

// ForwardAndLoss, BackwardAndReduceGradients and, with the last batch of an update, UnscaleGradients and Update.
absl::Status TrainOnBatch(SelfSupervisionTask& task, HookList& hooks, StepContext& context,
                          MeterUse meters = MeterUse::kMeasure);

}  // namespace ssl

#endif  // SSL_CORE_STEP_VERBS_H_
