// SPDX-License-Identifier: Apache-2.0
//
// What a run will measure at the ends of its phases, by the names of phase_values.h: known from its configuration, so
// that a metric that nobody measures is refused before the first step.
#ifndef SSL_HOOKS_MEASURED_NAMES_H_
#define SSL_HOOKS_MEASURED_NAMES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/registries.h"

namespace ssl {

// InvalidArgument for a metric that no phase of the run has, with the names that are measured: a name of no kind of
// phases, one of phases that settings keep out, one that neither the loss, nor a meter, nor the hook eval has, or one
// that stands for several values at once. A meter that does not name its values
// (ssl/core/value_names.h), as one of the host's may, can measure whatever begins with its name; "Host/..." can be
// anything (phase_values.h). place: "file:line: KEY".
absl::Status CheckPhaseMetric(absl::string_view metric, absl::string_view place, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_MEASURED_NAMES_H_
