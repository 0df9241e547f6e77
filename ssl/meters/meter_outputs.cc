// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/meter_outputs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ssl {

absl::StatusOr<std::vector<std::string>> OutputNames(absl::string_view meter, int64_t num_meters,
                                                     const std::vector<std::string>& meter_names) {
  if (!meter_names.empty() && static_cast<int64_t>(meter_names.size()) != num_meters) {
    return absl::InvalidArgumentError(absl::StrCat("config.METERS.", meter, ".meter_names has ", meter_names.size(),
                                                   " names (", absl::StrJoin(meter_names, ", "), "), expected ",
                                                   num_meters, " as num_meters, or none"));
  }
  std::vector<std::string> names;
  for (int64_t i = 0; i < num_meters; ++i) {
    const std::string given = meter_names.empty() ? absl::StrCat(i) : meter_names[i];
    std::string name = given;
    for (int64_t number = 1; std::find(names.begin(), names.end(), name) != names.end(); ++number) {
      name = absl::StrCat(given, "_", number);
    }
    names.push_back(name);
  }
  return names;
}

absl::Status CheckOutputs(absl::string_view meter, int64_t num_meters, const std::vector<at::Tensor>& outputs,
                          const at::Tensor& targets) {
  if (static_cast<int64_t>(outputs.size()) != num_meters) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", outputs.size(), " outputs, config.METERS.", meter,
                                                   ".num_meters is ", num_meters));
  }
  if (!targets.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(meter, " measures against labels, but the batch has none; set ",
                     "config.DATA.TRAIN.LABEL_SOURCES and config.DATA.TEST.LABEL_SOURCES"));
  }
  for (const at::Tensor& output : outputs) {
    if (output.dim() == 2 && targets.dim() > 0 && output.size(0) == targets.size(0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(meter, ": an output has shape [", absl::StrJoin(output.sizes(), ", "), "] and the targets [",
                     absl::StrJoin(targets.sizes(), ", "), "], expected [B, classes] and as many targets"));
  }
  return absl::OkStatus();
}

double RoundedPercent(double ratio) {
  constexpr double kDigits = 1e6;
  return 100.0 * (std::round(ratio * kDigits) / kDigits);
}

}  // namespace ssl
