// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/phase_loss.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "ssl/base/status_macros.h"
#include "ssl/core/counted_samples.h"

namespace ssl {
namespace {

int64_t WeightOf(const StepContext& context, const Method& method) {
  // A host's batch may not say how many samples it has.
  if (context.state.training || context.batch->size() == 0) return 1;
  return method.labels_are_classes() ? CountedLabels(context, method.ignored_label()) : CountedSamples(context);
}

}  // namespace

PhaseLoss::PhaseLoss(const c10::Device& device) : sum_(at::zeros({}, device)) {}

void PhaseLoss::Reset() {
  sum_.zero_();
  weight_ = 0;
}

// FitPosition has counted the batches anew, and has test phases begin anew: the mean of the batches that were stands
// for them.
void PhaseLoss::Fit(int64_t batches) {
  if (weight_ == batches || weight_ == 0) return;
  sum_.mul_(static_cast<double>(batches) / static_cast<double>(weight_));
  weight_ = batches;
}

void PhaseLoss::Add(const StepContext& context, const Method& method) {
  const int64_t weight = WeightOf(context, method);
  if (weight == 0) return;  // its loss need not be a number
  sum_.add_(context.loss.detach(), weight);
  weight_ += weight;
}

absl::StatusOr<double> PhaseLoss::Mean(Communicator& communicator) const {
  at::Tensor sums = at::full({2}, weight_, at::kDouble);
  sums[0].copy_(sum_);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(sums, ReduceOp::kSum));
  return sums[0].item<double>() / std::max(sums[1].item<double>(), 1.0);
}

void PhaseLoss::VisitState(StateVisitor& visitor) {
  visitor.Tensor("phase_loss", sum_);
  visitor.MayBeNonFinite("phase_loss");  // a report: a run without CHECK_NAN may go on after a loss that is infinite
  visitor.RanksDiffer("phase_loss", RankValues::kMean);
  visitor.Int("phase_batches", weight_);  // a phase that goes on is a train phase, where each batch counts as one
}

}  // namespace ssl
