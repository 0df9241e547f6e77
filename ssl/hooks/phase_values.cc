// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/phase_values.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace ssl {

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

}  // namespace ssl
