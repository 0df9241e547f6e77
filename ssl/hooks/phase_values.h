// SPDX-License-Identifier: Apache-2.0
//
// What the meters say about a phase that ends (context.meter_reports), as numbers with the names that sinks and options
// use: "Testing/accuracy_list_meter_top_1_Output_0", "Training/loss_mean".
#ifndef SSL_HOOKS_PHASE_VALUES_H_
#define SSL_HOOKS_PHASE_VALUES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Without lists: values that share metric and output.
std::map<std::string, double> PhaseValues(const StepContext& context);

// A metric that options choose has the name of one kind of phases: "Training/...", "Testing/...", or "Evaluation/..."
// for those that the hook `eval` chooses. "Host/..." is of none of them: it is what hooks of the program's own report
// (MeterReport::scope is "Host"), when they choose. The latter two may come at steps as well.
bool IsOfTrainPhases(absl::string_view metric);
bool IsOfTestPhases(absl::string_view metric);
bool IsOfEvaluations(absl::string_view metric);
bool IsOfHost(absl::string_view metric);

// The value of `metric` in the phase that ends; none when phases of another kind have it, the phase was not evaluated,
// or no hook of the host's has reported it. NotFound, naming `key` and the nearest name, when the phase should have it
// and has not.
absl::StatusOr<std::optional<double>> PhaseValue(const std::string& metric, absl::string_view key,
                                                 const StepContext& context);

// The same between phase ends: what hooks have added in the same OnStep, or in OnPhaseStart for a step after which the
// process before was stopped. None for metrics of whole phases, and where no hook has measured it.
std::optional<double> StepValue(const std::string& metric, const StepContext& context);

// The plan of a hook that looks for better values of `metric`, and leaves `file`, "" for none.
PlannedAction LooksForBetter(const std::string& metric, const std::string& file = "");

}  // namespace ssl

#endif  // SSL_HOOKS_PHASE_VALUES_H_
