// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/validation_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/batch.h"
#include "ssl/core/class_numbers.h"
#include "ssl/core/device_batch_source.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/metrics.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/stateful.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/evaluation_mode.h"
#include "ssl/hooks/labelled_features.h"

namespace ssl {
namespace {

constexpr char kWhat[] = "measuring the loss on config.DATA.TEST";

absl::StatusOr<std::vector<NamedTensor>> CopyOfState(Stateful& part) {
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, CollectState(part));
  for (NamedTensor& entry : state) {
    if (entry.tensor.defined()) entry.tensor = entry.tensor.detach().clone();
  }
  return state;
}

// A part whose state is put back as it was, finite or not: an observer ends no run that goes on with such numbers.
class AsItWas : public Stateful {
 public:
  AsItWas(Stateful& part, const std::vector<NamedTensor>& state) : part_(part), state_(state) {}
  void VisitState(StateVisitor& visitor) override {
    part_.VisitState(visitor);
    for (const NamedTensor& entry : state_) visitor.MayBeNonFinite(entry.name);
  }

 private:
  Stateful& part_;
  const std::vector<NamedTensor>& state_;
};

// The step of a test phase, with nothing of the step in progress but the parts of the run.
class TestStep {
 public:
  TestStep(const StepContext& outer, const ValidationLossRun& run)
      : run_(run), state_(outer.state), context_{state_,   outer.model, outer.optimizer, outer.communicator,
                                                 metrics_, stop_,       nullptr} {
    state_.training = false;
    state_.phase_index = 0;  // a method may draw by it, and each evaluation draws the same
    context_.batch_size = outer.batch_size;
    context_.batches_per_epoch = run.source.batches_per_epoch();
    context_.num_epochs = outer.num_epochs;
    context_.num_train_samples = outer.num_train_samples;
    context_.first_iteration = outer.first_iteration;
    context_.source = &run.source;
  }

  absl::Status Start() {
    return GuardTorch(kWhat, [this] {
      const c10::Device device = DeviceOf(context_.model);
      if (device.is_cpu()) return run_.source.StartEpoch(0, 0);
      on_device_.emplace(run_.source, device, [this](const at::Tensor& targets) {
        return CheckTargets(targets, run_.num_classes, run_.method.ignored_label());
      });
      return on_device_->StartEpoch(0, 0);
    });
  }

  // Apart from Add: a rank that cannot read says so before the others wait for it in a collective of the method.
  absl::Status Read(int64_t index) {
    SSL_RETURN_IF_ERROR(GuardTorch(kWhat, [this]() -> absl::Status {
      SSL_ASSIGN_OR_RETURN(context_.batch, on_device_.has_value() ? on_device_->Next() : run_.source.Next());
      return absl::OkStatus();
    }));
    if (context_.batch == nullptr) return absl::InternalError("fewer batches than batches_per_epoch()");
    if (index == 0) full_size_ = context_.batch->size();
    return absl::OkStatus();
  }

  // Adds the batch that was read, with number `index`: its loss, itself and its samples to `sums`, [3] double.
  absl::Status Add(int64_t index, at::Tensor& sums) {
    const int64_t size = context_.batch->size();
    if (size < full_size_) return absl::OkStatus();
    state_.batch_in_phase = index;
    SeedForBatch(run_.seed, context_.communicator.rank(), /*phase=*/0, index);
    return GuardTorch(kWhat, [&]() -> absl::Status {
      const AutocastScope precision(run_.autocast);
      SSL_RETURN_IF_ERROR(run_.method.Forward(context_));
      SSL_RETURN_IF_ERROR(run_.method.ComputeLoss(context_));
      sums.select(0, 0).add_(context_.loss.detach().to(at::kDouble).cpu());
      sums.select(0, 1).add_(1.0);
      sums.select(0, 2).add_(static_cast<double>(size));
      return absl::OkStatus();
    });
  }

 private:
  const ValidationLossRun& run_;
  TrainState state_;
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_;
  std::optional<DeviceBatchSource> on_device_;  // unless the device is the CPU
  int64_t full_size_ = 0;
};

absl::StatusOr<std::optional<ValidationLoss>> MeanLoss(const ValidationLossRun& run, int64_t most_batches,
                                                       StepContext& context) {
  TestStep step(context, run);
  at::Tensor sums = at::zeros({3}, at::kDouble);
  absl::Status status = step.Start();
  // Ranks have equally many batches. They agree on each, so that all leave at the same one.
  const int64_t batches = std::min(most_batches, run.source.batches_per_epoch());
  for (int64_t i = 0; i < batches; ++i) {
    if (status.ok()) status = step.Read(i);
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, kWhat, context.communicator));
    status = step.Add(i, sums);
    const bool stops_here = context.interruption != nullptr && context.interruption->requested();
    SSL_ASSIGN_OR_RETURN(const bool stops, AnyRank(stops_here, context.communicator));
    if (!stops) continue;
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, kWhat, context.communicator));
    return std::optional<ValidationLoss>();
  }
  SSL_RETURN_IF_ERROR(AgreeOnStatus(status, kWhat, context.communicator));
  SSL_RETURN_IF_ERROR(context.communicator.AllReduce(sums, ReduceOp::kSum));
  const double* values = sums.const_data_ptr<double>();
  return std::optional<ValidationLoss>(ValidationLoss{values[0] / values[1], static_cast<int64_t>(values[2])});
}

absl::StatusOr<std::optional<ValidationLoss>> Measure(const ValidationLossRun& run, int64_t most_batches,
                                                      StepContext& context) {
  const GeneratorScope generator;
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(context.model, context.state.training);
  // A momentum encoder's own statistics move with each forward pass, whatever the mode of the model.
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> before, CopyOfState(run.method));
  SSL_ASSIGN_OR_RETURN(const std::optional<ValidationLoss> loss, MeanLoss(run, most_batches, context));
  AsItWas as_it_was(run.method, before);
  SSL_RETURN_IF_ERROR(RestoreState(as_it_was, before, kWhat));
  return loss;
}

}  // namespace

absl::StatusOr<std::optional<ValidationLoss>> MeasureValidationLoss(const ValidationLossRun& run,
                                                                    StepContext& context) {
  return Measure(run, std::numeric_limits<int64_t>::max(), context);
}

absl::Status TryValidationLoss(const ValidationLossRun& run, StepContext& context) {
  return Measure(run, /*most_batches=*/1, context).status();
}

}  // namespace ssl
