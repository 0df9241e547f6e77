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

// InvalidArgument for a metric that no phase of the run has: a name of no kind of phases, one of phases that settings
// keep out, one that is at most two letters from a name that is measured, one that the hook eval could measure and is
// not told to, or one that stands for several values at once. Any other name may be right, because hooks and meters of
// the host's may add reports: one that is not known to be measured is a warning of rank 0. place: "file:line: KEY".
absl::Status CheckPhaseMetric(absl::string_view metric, absl::string_view place, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_MEASURED_NAMES_H_
