// SPDX-License-Identifier: Apache-2.0
//
// What all list meters do with the outputs of a model: give them names, and check that they fit. Stateless.
#ifndef SSL_METERS_METER_OUTPUTS_H_
#define SSL_METERS_METER_OUTPUTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Names of the outputs, all different: those given, or "0", "1", ... when none are. A name that occurs again gets a
// number ("res5", "res5_1"), where VISSL makes a list of the values. InvalidArgument, naming the meter, when there are
// names, but not num_meters.
absl::StatusOr<std::vector<std::string>> OutputNames(absl::string_view meter, int64_t num_meters,
                                                     const std::vector<std::string>& meter_names);

// InvalidArgument, naming the meter and both sides, unless there are num_meters outputs [B, classes] of B samples each.
absl::Status CheckOutputs(absl::string_view meter, int64_t num_meters, const std::vector<at::Tensor>& outputs,
                          const at::Tensor& targets);

// 100 x ratio, the ratio rounded to six digits as VISSL does.
double RoundedPercent(double ratio);

}  // namespace ssl

#endif  // SSL_METERS_METER_OUTPUTS_H_
