// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/early_stop_hook.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/measured_names.h"
#include "ssl/hooks/phase_values.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kMin[] = "min";

std::string Counted(const std::string& metric, int64_t count) {
  const char* what = IsOfEvaluations(metric) ? "evaluation" : IsOfHost(metric) ? "value" : "phase";
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Of all phases' ends: a train phase and the test phase behind it end at one iteration.
int64_t EndOf(const TrainState& state) { return 2 * state.iteration + (state.training ? 1 : 0); }

absl::StatusOr<std::unique_ptr<Hook>> MakeEarlyStop(const EarlyStopOptions& options, const ConfigNode& params,
                                                    const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckPhaseMetric(options.metric, PlaceOf(params, "METRIC", context), context));
  return std::make_unique<EarlyStopHook>(options,
                                         EarlyStopPaths{PathOfKey("METRIC", context), PathOfKey("PATIENCE", context)});
}

}  // namespace

void EarlyStopOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("METRIC", &metric, Doc("what has to get better, such as Testing/loss_mean; empty: never stop (ours)"));
  visitor.Field("MODE", &mode, Doc("whether better is less or more").OneOf({kMin, "max"}));
  visitor.Field(
      "PATIENCE", &patience,
      Doc("values in a row that are no better and end the run: of phases, or of evaluations").AtLeast(1).MayChange());
  visitor.Field("MIN_DELTA", &min_delta, Doc("by how much a value has to be better").AtLeast(0).MayChange());
}

EarlyStopHook::EarlyStopHook(const EarlyStopOptions& options, EarlyStopPaths paths)
    : options_(options), paths_(std::move(paths)) {
  counted_.metric = options_.metric;
  counted_.mode = options_.mode;
}

std::vector<PlannedAction> EarlyStopHook::Plan() const { return {LooksForBetter(options_.metric)}; }

bool EarlyStopHook::IsBetter(double value) const {
  if (!std::isfinite(value)) return false;
  if (has_best_ == 0) return true;
  return options_.mode == kMin ? value < best_ - options_.min_delta : value > best_ + options_.min_delta;
}

// An end that has been counted and not been told to all hooks is told again, and ends the run then.
absl::Status EarlyStopHook::OnStart(StepContext& context) {
  const bool is_told_again =
      counted_.end >= 0 && counted_.end / 2 == context.state.iteration && context.state.phase_ended == 0;
  if (!is_told_again) EndIfDue(context);
  return absl::OkStatus();
}

absl::Status EarlyStopHook::OnStep(StepContext& context) {
  const std::optional<double> value = StepValue(options_.metric, context);
  if (value.has_value()) Count(*value, context);
  return absl::OkStatus();
}

absl::Status EarlyStopHook::OnPhaseEnd(StepContext& context) {
  SSL_ASSIGN_OR_RETURN(const std::optional<double> value, PhaseValue(options_.metric, paths_.metric, context));
  if (!value.has_value()) return absl::OkStatus();
  const bool is_counted = std::exchange(counted_.end, EndOf(context.state)) == EndOf(context.state);
  is_counted ? EndIfDue(context) : Count(*value, context);
  return absl::OkStatus();
}

void EarlyStopHook::Count(double value, StepContext& context) {
  if (IsBetter(value)) {
    best_ = value;
    has_best_ = 1;
    phases_without_ = 0;
  } else {
    ++phases_without_;
  }
  EndIfDue(context);
}

// Evaluations may come with no phase, and so may what a host's hooks report.
absl::Status EarlyStopHook::OnEnd(StepContext& context) {
  const bool never_measured = has_best_ == 0 && phases_without_ == 0;
  const bool is_whole = context.state.iteration >= context.state.max_iterations;
  if (!never_measured || !is_whole || context.communicator.rank() != 0) return absl::OkStatus();
  const std::string what = absl::StrCat(instance_name(), ": ", paths_.metric, " is '", options_.metric, "', which ");
  if (IsOfHost(options_.metric))
    SSL_LOG(WARNING) << what << "no hook of the program's own has reported in a stage before persist";
  if (IsOfEvaluations(options_.metric)) {
    SSL_LOG(WARNING) << what << "no evaluation has measured; the hook eval (config.HOOKS.EVAL) says what it measures";
  }
  return absl::OkStatus();
}

// The values are those of all ranks, so all of them ask at once. How many there were beyond the patience is not told: a
// finished run that starts again with a smaller one does not know of those behind its last checkpoint.
void EarlyStopHook::EndIfDue(StepContext& context) const {
  if (phases_without_ < options_.patience) return;
  const std::string what =
      has_best_ != 0 ? absl::StrCat("has not been better than ", best_) : "has been no finite number";
  // The list of hooks is one value of the configuration, in which nothing may change by itself.
  const bool is_of_list = absl::StartsWith(paths_.patience, "config.hooks.");
  context.RequestStop(absl::StrCat(instance_name(), ": ", options_.metric, " ", what, " for ",
                                   Counted(options_.metric, options_.patience), "; with a larger ", paths_.patience,
                                   is_of_list ? " and config.CHECKPOINT.ALLOW_CHANGES=[hooks]" : "",
                                   " the same command goes on"));
}

void CountedValues::VisitState(StateVisitor& visitor) {
  visitor.Int("end", end);
  visitor.Text("metric", metric);
  visitor.Text("mode", mode);
}

// A best value of another metric says nothing about this one.
void EarlyStopHook::StartAnewForAnother() {
  if (counted_.metric == options_.metric && counted_.mode == options_.mode) return;
  SSL_LOG(WARNING) << instance_name() << ": counts anew: the checkpoint has counted values of " << counted_.metric
                   << " (" << counted_.mode << "), and " << paths_.metric << " is " << options_.metric << " ("
                   << options_.mode << ")";
  counted_ = CountedValues();
  counted_.metric = options_.metric;
  counted_.mode = options_.mode;
  best_ = 0.0;
  has_best_ = 0;
  phases_without_ = 0;
}

void EarlyStopHook::VisitState(StateVisitor& visitor) {
  visitor.Double("best", best_);
  visitor.Int("has_best", has_best_);
  visitor.Int("phases_without", phases_without_);
  visitor.ScopesMayDiffer();
  visitor.Scope("counted", counted_);
  visitor.OnRestored([this] { StartAnewForAnother(); });
}

absl::Status RegisterEarlyStopHook(Registries* registries) {
  constexpr int kRank = -2;  // before best_checkpoint, which saves what it counts
  return RegisterHook(registries, {"early_stop", "ends the run when a metric no longer gets better", kRank},
                      &MakeEarlyStop);
}

}  // namespace ssl
