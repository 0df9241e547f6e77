// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/validation_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/batch.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/metrics.h"
#include "ssl/core/state_dict.h"
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

// The step of a test phase, with nothing of the step in progress but the parts of the run.
class TestStep {
 public:
  TestStep(const StepContext& outer, const BatchSource& source)
      : state_(outer.state), context_{state_,   outer.model, outer.optimizer, outer.communicator,
                                      metrics_, stop_,       nullptr} {
    state_.training = false;
    context_.batch_size = outer.batch_size;
    context_.batches_per_epoch = source.batches_per_epoch();
    context_.num_epochs = outer.num_epochs;
    context_.num_train_samples = outer.num_train_samples;
    context_.first_iteration = outer.first_iteration;
    context_.source = &source;
  }

  // Adds the loss of batch `index` to `sum_and_count`, [2] double.
  absl::Status Add(const ValidationLossRun& run, int64_t index, at::Tensor& sum_and_count) {
    SSL_ASSIGN_OR_RETURN(context_.batch, run.source.Next());
    if (context_.batch == nullptr) return absl::InternalError("fewer batches than batches_per_epoch()");
    const int64_t size = context_.batch->size();
    if (index == 0) full_size_ = size;
    if (size < full_size_) return absl::OkStatus();
    state_.batch_in_phase = index;
    SeedForBatch(run.seed, context_.communicator.rank(), /*phase=*/0, index);
    return GuardTorch(kWhat, [&]() -> absl::Status {
      const AutocastScope precision(run.autocast);
      SSL_RETURN_IF_ERROR(run.method.Forward(context_));
      SSL_RETURN_IF_ERROR(run.method.ComputeLoss(context_));
      sum_and_count.select(0, 0).add_(context_.loss.detach().to(at::kDouble).cpu());
      sum_and_count.select(0, 1).add_(1.0);
      return absl::OkStatus();
    });
  }

 private:
  TrainState state_;
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_;
  int64_t full_size_ = 0;
};

absl::StatusOr<std::optional<double>> MeanLoss(const ValidationLossRun& run, StepContext& context) {
  TestStep step(context, run.source);
  at::Tensor sum_and_count = at::zeros({2}, at::kDouble);
  absl::Status status = run.source.StartEpoch(0, 0);
  // Ranks have equally many batches. They agree after each, so that all leave at the same one.
  for (int64_t i = 0; i < run.source.batches_per_epoch(); ++i) {
    if (status.ok()) status = step.Add(run, i, sum_and_count);
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, kWhat, context.communicator));
    SSL_ASSIGN_OR_RETURN(const bool stops, AnyRankStops(context.interruption, context.communicator));
    if (stops) return std::optional<double>();
  }
  SSL_RETURN_IF_ERROR(context.communicator.AllReduce(sum_and_count, ReduceOp::kSum));
  const double* values = sum_and_count.const_data_ptr<double>();
  return std::optional<double>(values[0] / values[1]);
}

}  // namespace

absl::StatusOr<std::optional<double>> MeasureValidationLoss(const ValidationLossRun& run, StepContext& context) {
  const GeneratorScope generator;
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(context.model, context.state.training);
  // A momentum encoder's own statistics move with each forward pass, whatever the mode of the model.
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> before, CopyOfState(run.method));
  SSL_ASSIGN_OR_RETURN(const std::optional<double> loss, MeanLoss(run, context));
  SSL_RETURN_IF_ERROR(RestoreState(run.method, before, kWhat));
  return loss;
}

}  // namespace ssl
