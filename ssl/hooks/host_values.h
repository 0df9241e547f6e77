// SPDX-License-Identifier: Apache-2.0
//
// What hooks of a program's own measure (MeterReport::scope "Host") is one number for the run: the mean over its ranks,
// as of other metrics. Else one rank would save a best checkpoint, or end the run, and the others not.
#ifndef SSL_HOOKS_HOST_VALUES_H_
#define SSL_HOOKS_HOST_VALUES_H_

#include "absl/status/status.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Whether this rank's context.meter_reports have values of the program's own.
bool HasHostValues(const StepContext& context);

// Puts the means over all ranks in their place. FailedPrecondition, on all ranks, where these have not reported the
// same names in the same order. Collective: where a rank that reports nothing does not call it, the communicator's
// error on the others says what they have reported, and what is expected.
absl::Status AverageHostValues(StepContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_HOST_VALUES_H_
