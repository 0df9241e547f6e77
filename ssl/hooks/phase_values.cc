// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/phase_values.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

constexpr char kTraining[] = "Training/";
constexpr char kTesting[] = "Testing/";
constexpr char kEvaluation[] = "Evaluation/";
constexpr char kHost[] = "Host/";

// Those that come when a hook has them.
bool MayLack(const std::string& metric) { return IsOfEvaluations(metric) || IsOfHost(metric); }

}  // namespace

std::map<std::string, double> PhaseValues(const StepContext& context) {
  std::map<std::string, double> values;
  std::set<std::string> lists;
  const char* phase = context.state.training ? "Training" : "Testing";
  for (const MeterReport& report : context.meter_reports) {
    const std::string scope = report.scope.empty() ? phase : report.scope;
    for (const MeterValue& value : report.values) {
      const std::string suffix = value.output.empty() ? "" : absl::StrCat("_Output_", value.output);
      const std::string name = absl::StrCat(scope, "/", report.meter, "_", value.metric, suffix);
      if (!values.emplace(name, value.value).second) lists.insert(name);
    }
  }
  for (const std::string& name : lists) values.erase(name);
  return values;
}

bool IsOfTrainPhases(absl::string_view metric) { return absl::StartsWith(metric, kTraining); }

bool IsOfTestPhases(absl::string_view metric) { return absl::StartsWith(metric, kTesting); }

bool IsOfEvaluations(absl::string_view metric) { return absl::StartsWith(metric, kEvaluation); }

bool IsOfHost(absl::string_view metric) { return absl::StartsWith(metric, kHost); }

absl::StatusOr<std::optional<double>> PhaseValue(const std::string& metric, absl::string_view key,
                                                 const StepContext& context) {
  const std::map<std::string, double> values = PhaseValues(context);
  const auto found = values.find(metric);
  if (found != values.end()) return found->second;
  if (MayLack(metric) || IsOfTestPhases(metric) == context.state.training) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return absl::NotFoundError(absl::StrCat(key, " is '", metric, "', which the phase has not measured",
                                          DidYouMean(metric, names), "; config.METERS.names says what is"));
}

std::optional<double> StepValue(const std::string& metric, const StepContext& context) {
  if (!MayLack(metric)) return std::nullopt;
  const std::map<std::string, double> values = PhaseValues(context);
  const auto found = values.find(metric);
  return found == values.end() ? std::nullopt : std::optional<double>(found->second);
}

PlannedAction LooksForBetter(const std::string& metric, const std::string& file) {
  PlannedAction action{absl::StrCat("looks for a better ", metric),
                       {Cadence::Unit::kEpoch, 1, 1, 0, false},
                       IsOfTestPhases(metric),
                       file};
  if (IsOfEvaluations(metric)) action.moments = "at each evaluation";
  if (IsOfHost(metric)) action.moments = "when a hook reports it";
  return action;
}

}  // namespace ssl
