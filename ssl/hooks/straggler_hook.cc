// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/straggler_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr double kMsPerSecond = 1e3;

// What a rank tells: the whole first, then its parts.
struct Part {
  StepPart part;
  const char* name;
};
constexpr std::array<Part, 7> kParts = {{{StepPart::kReadSample, "reading batches"},
                                         {StepPart::kForward, "the forward pass"},
                                         {StepPart::kLossCompute, "the loss"},
                                         {StepPart::kBackward, "the backward pass"},
                                         {StepPart::kReduceGradients, "preparing gradients for their reduction"},
                                         {StepPart::kOptimizerStep, "the optimizer"},
                                         {StepPart::kWaitForDevice, "waiting for its device"}}};

double WorkMs(const PerfStats& of_a_step) {
  return kMsPerSecond * (of_a_step.Seconds(StepPart::kStepTotal) - of_a_step.Seconds(StepPart::kWaitForRanks));
}

// values: not empty; their order is lost.
double Median(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

// [1 + kParts] milliseconds of a step.
at::Tensor WorkOfAStep(double work, const PerfStats& window) {
  const double per_step = kMsPerSecond / static_cast<double>(std::max<int64_t>(1, window.steps()));
  at::Tensor times = at::empty({static_cast<int64_t>(kParts.size()) + 1}, at::kDouble);
  double* cell = times.mutable_data_ptr<double>();
  *cell++ = work;
  for (const Part& part : kParts) *cell++ = per_step * window.Seconds(part.part);
  return times;
}

absl::StatusOr<std::unique_ptr<Hook>> MakeStraggler(const StragglerOptions& options, const ConfigNode& params,
                                                    const BuildContext& context) {
  return std::make_unique<StragglerHook>(options);
}

}  // namespace

void StragglerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("REPORT_STRAGGLERS", &report_stragglers,
                Doc("report how long each rank works on a step, and warn of a slow one (ours)").MayChange());
  visitor.Field("FREQUENCY", &frequency, Doc("updates between two reports (ours)").AtLeast(1).MayChange());
  visitor.Field("FACTOR", &factor,
                Doc("of the ranks' median time; a rank that takes longer is warned of (ours)").AtLeast(1).MayChange());
}

// The batches of a test phase are no updates.
std::vector<PlannedAction> StragglerHook::Plan() const {
  return {{"compares the ranks", {Cadence::Unit::kUpdate, options_.frequency, 1, 0, false}}};
}

absl::Status StragglerHook::OnPhaseStart(StepContext& context) {
  begin_ = last_ = context.perf_stats;
  work_.clear();
  return absl::OkStatus();
}

absl::Status StragglerHook::OnStep(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  work_.push_back(WorkMs(context.perf_stats.Since(last_)));
  last_ = context.perf_stats;
  if (context.state.iteration % options_.frequency != 0) return absl::OkStatus();
  const at::Tensor own = WorkOfAStep(Median(&work_), context.perf_stats.Since(begin_));
  begin_ = last_;
  work_.clear();
  SSL_ASSIGN_OR_RETURN(const at::Tensor times, context.communicator.AllGather(own));  // [ranks, 1 + kParts]
  const at::Tensor work = times.select(1, 0);
  const int64_t slowest = work.argmax().item<int64_t>();
  const double most = work[slowest].item<double>();
  const double mean = work.mean().item<double>();
  const double median = work.median().item<double>();
  const double ratio = median > 0.0 ? most / median : 1.0;
  context.metrics.Set("Speed/rank_work_ms_mean", mean);
  context.metrics.Set("Speed/rank_work_ms_max", most);
  context.metrics.Set("Speed/straggler_ratio", ratio);
  context.metrics.Set("Speed/slowest_rank", static_cast<double>(slowest));
  if (ratio > options_.factor && context.communicator.rank() == 0) Warn(times, slowest, ratio, context);
  return absl::OkStatus();
}

void StragglerHook::Warn(const at::Tensor& times, int64_t slowest, double ratio, const StepContext& context) const {
  const at::Tensor lost = (times[slowest] - times.mean(0)).slice(0, 1);  // [kParts], to the mean rank
  const int64_t worst = lost.argmax().item<int64_t>();
  SSL_LOG(WARNING) << absl::StrFormat(
      "%s: iteration %d: rank %d works %.1f ms on a step, %.2f times the median of %d ranks; it loses most in %s (%.1f "
      "ms more than the mean)",
      instance_name(), context.state.iteration, slowest, times[slowest][0].item<double>(), ratio, times.size(0),
      kParts[static_cast<size_t>(worst)].name, lost[worst].item<double>());
}

absl::Status RegisterStragglerHook(Registries* registries) {
  return RegisterHook(registries, {"straggler", "reports how long each rank works on a step, and warns of a slow one"},
                      &MakeStraggler);
}

}  // namespace ssl
