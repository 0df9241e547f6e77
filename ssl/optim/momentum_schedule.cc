// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/momentum_schedule.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/schedule.h"

namespace ssl {
namespace {

constexpr char kName[] = "momentum";
// A schedule is a function that only its values tell of; those at so many places leave nothing out that matters.
constexpr int kPlaces = 1000;

absl::Status CheckValues(const Schedule& schedule, const ConfigNode& node) {
  for (int i = 0; i < kPlaces; ++i) {
    const double value = schedule.ValueAt(static_cast<double>(i) / kPlaces);
    if (value >= 0.0 && value <= 1.0) continue;
    return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": config.OPTIMIZER.param_schedulers.",
                                                   kName, " is ", value, " after ", 100.0 * i / kPlaces,
                                                   " % of training, expected values between 0 and 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MomentumSchedule(const ConfigNode& params, const BuildContext& context) {
  const ConfigNode* node = params.FindPath(absl::StrCat("param_schedulers.", kName));
  if (node == nullptr || !node->is_map()) return std::string();
  const ConfigNode* kind = node->Find("name");
  SSL_ASSIGN_OR_RETURN(const std::string name,
                       kind != nullptr ? kind->AsString() : absl::StatusOr<std::string>("constant"));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Schedule> schedule,
                       context.registries.schedules.Make(name, *node, context));
  SSL_RETURN_IF_ERROR(CheckValues(*schedule, *node));
  return std::string(kName);
}

void SetMomentum(double momentum, const std::string& schedule, std::vector<ParameterGroup>* groups) {
  for (ParameterGroup& group : *groups) {
    group.momentum = momentum;
    group.momentum_schedule = schedule;
  }
}

}  // namespace ssl
