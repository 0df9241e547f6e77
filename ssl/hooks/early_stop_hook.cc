// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/early_stop_hook.h"

#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/hooks/phase_values.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kMin[] = "min";
constexpr char kTraining[] = "Training/";
constexpr char kTesting[] = "Testing/";
constexpr char kEvaluation[] = "Evaluation/";

// "config.TEST_MODEL is false (run.yaml:3)" when such settings keep the metric's phases out of the run; "" when not.
std::string WhyNeverMeasured(absl::string_view metric, const ConfigNode& config) {
  const auto is = [&config](absl::string_view key, bool value) {
    const ConfigNode* node = config.FindPath(key);
    return node != nullptr && node->AsBool().value_or(!value) == value;
  };
  const auto setting = [&config](absl::string_view key, absl::string_view value) {
    return absl::StrCat("config.", key, " is ", value, " (", config.FindPath(key)->location().ToString(), ")");
  };
  const bool only_tests = is("TEST_ONLY", true);
  if (absl::StartsWith(metric, kEvaluation)) return "";
  if (absl::StartsWith(metric, kTraining)) return only_tests ? setting("TEST_ONLY", "true") : "";
  return !only_tests && is("TEST_MODEL", false) ? setting("TEST_MODEL", "false") : "";
}

absl::StatusOr<std::unique_ptr<Hook>> MakeEarlyStop(const EarlyStopOptions& options, const ConfigNode& params,
                                                    const BuildContext& context) {
  const auto starts = [&options](absl::string_view prefix) { return absl::StartsWith(options.metric, prefix); };
  if (!starts(kTraining) && !starts(kTesting) && !starts(kEvaluation)) {
    return absl::InvalidArgumentError(absl::StrCat(
        PlaceOf(params, "METRIC"), " is '", options.metric,
        "', expected a name that starts with Training/, Testing/ or Evaluation/, such as ", "Testing/loss_mean"));
  }
  const std::string why_not = WhyNeverMeasured(options.metric, context.config);
  if (why_not.empty()) return std::make_unique<EarlyStopHook>(options);
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, "METRIC"), " is '", options.metric,
                                                 "', which this run never measures: ", why_not,
                                                 ", so that nothing would end it early"));
}

}  // namespace

void EarlyStopOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("METRIC", &metric, Doc("what has to get better, such as Testing/loss_mean; empty: never stop (ours)"));
  visitor.Field("MODE", &mode, Doc("whether better is less or more").OneOf({kMin, "max"}));
  visitor.Field("PATIENCE", &patience,
                Doc("phases in a row without a better value that end the run").AtLeast(1).MayChange());
  visitor.Field("MIN_DELTA", &min_delta, Doc("by how much a value has to be better").AtLeast(0).MayChange());
}

bool EarlyStopHook::IsBetter(double value) const {
  if (!std::isfinite(value)) return false;
  if (has_best_ == 0) return true;
  return options_.mode == kMin ? value < best_ - options_.min_delta : value > best_ + options_.min_delta;
}

// Evaluations have phases of their own choice.
bool EarlyStopHook::IsMeasuredNow(const std::map<std::string, double>& values, bool training) const {
  if (!absl::StartsWith(options_.metric, kEvaluation)) {
    return absl::StartsWith(options_.metric, training ? kTraining : kTesting);
  }
  return values.count(options_.metric) > 0;
}

absl::Status EarlyStopHook::OnStart(StepContext& context) {
  EndIfDue(context);
  return absl::OkStatus();
}

absl::Status EarlyStopHook::OnPhaseEnd(StepContext& context) {
  const std::map<std::string, double> values = PhaseValues(context);
  if (!IsMeasuredNow(values, context.state.training)) return absl::OkStatus();
  const auto found = values.find(options_.metric);
  if (found == values.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    return absl::NotFoundError(absl::StrCat("config.HOOKS.EARLY_STOP.METRIC is '", options_.metric,
                                            "', which the phase has not measured", DidYouMean(options_.metric, names),
                                            "; config.METERS.names says what is"));
  }
  if (IsBetter(found->second)) {
    best_ = found->second;
    has_best_ = 1;
    phases_without_ = 0;
  } else {
    ++phases_without_;
  }
  EndIfDue(context);
  return absl::OkStatus();
}

// Which phases have an evaluation is not known before, so that a wrong name shows at the end only.
absl::Status EarlyStopHook::OnEnd(StepContext& context) {
  const bool never_measured = has_best_ == 0 && phases_without_ == 0;
  if (absl::StartsWith(options_.metric, kEvaluation) && never_measured && context.communicator.rank() == 0) {
    SSL_LOG(WARNING) << instance_name() << ": config.HOOKS.EARLY_STOP.METRIC is '" << options_.metric
                     << "', which no evaluation has measured; the hook eval (config.HOOKS.EVAL) says what it measures";
  }
  return absl::OkStatus();
}

// The values are those of all ranks, so all of them ask at once.
void EarlyStopHook::EndIfDue(StepContext& context) const {
  if (phases_without_ < options_.patience) return;
  const std::string what =
      has_best_ != 0 ? absl::StrCat("has not been better than ", best_) : "has been no finite number";
  context.RequestStop(absl::StrCat(instance_name(), ": ", options_.metric, " ", what, " for ", phases_without_,
                                   " phases; with a larger config.HOOKS.EARLY_STOP.PATIENCE the same command goes on"));
}

void EarlyStopHook::VisitState(StateVisitor& visitor) {
  visitor.Double("best", best_);
  visitor.Int("has_best", has_best_);
  visitor.Int("phases_without", phases_without_);
}

absl::Status RegisterEarlyStopHook(Registries* registries) {
  constexpr int kRank = 1;  // after ema, whose reports may have the metric
  return RegisterHook(registries, {"early_stop", "ends the run when a metric no longer gets better", kRank},
                      &MakeEarlyStop);
}

}  // namespace ssl
