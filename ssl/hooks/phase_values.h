// SPDX-License-Identifier: Apache-2.0
//
// What the meters say about a phase that ends (context.meter_reports), as numbers with the names that sinks and options
// use: "Testing/accuracy_list_meter_top_1_Output_0", "Training/loss_mean".
#ifndef SSL_HOOKS_PHASE_VALUES_H_
#define SSL_HOOKS_PHASE_VALUES_H_

#include <map>
#include <string>

#include "ssl/core/step_context.h"

namespace ssl {

// Without lists: values that share metric and output.
std::map<std::string, double> PhaseValues(const StepContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_PHASE_VALUES_H_
