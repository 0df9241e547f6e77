// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/schedule_monitor_hook.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Hook>> MakeScheduleMonitor(const ScheduleMonitorOptions& options,
                                                          const ConfigNode& params, const BuildContext& context) {
  return std::make_unique<ScheduleMonitorHook>();
}

// Not null: there is a group.
const ParameterGroup& Representative(const std::vector<ParameterGroup>& groups) {
  const auto by_size = [](const ParameterGroup& left, const ParameterGroup& right) {
    return left.parameters.size() < right.parameters.size();
  };
  const auto largest = std::max_element(groups.begin(), groups.end(), by_size);
  if (largest->parameters.size() > 1) return *largest;
  std::map<double, int> frequencies;
  for (const ParameterGroup& group : groups) ++frequencies[group.learning_rate];
  const auto by_frequency = [&frequencies](const ParameterGroup& left, const ParameterGroup& right) {
    return frequencies[left.learning_rate] < frequencies[right.learning_rate];
  };
  return *std::max_element(groups.begin(), groups.end(), by_frequency);
}

}  // namespace

std::vector<PlannedAction> ScheduleMonitorHook::Plan() const {
  return {{"records learning rate, weight decay and momentum", {Cadence::Unit::kUpdate, 1, 1, 0, false}}};
}

absl::Status ScheduleMonitorHook::OnUpdate(StepContext& context) {
  if (context.optimizer == nullptr || context.optimizer->groups().empty()) return absl::OkStatus();
  const ParameterGroup& group = Representative(context.optimizer->groups());
  context.metrics.Set("Training/lr", group.learning_rate);
  if (!group.weight_decay_schedule.empty()) context.metrics.Set("Training/weight_decay", group.weight_decay);
  if (!group.momentum_schedule.empty()) context.metrics.Set("Training/momentum", group.momentum);
  return absl::OkStatus();
}

absl::Status RegisterScheduleMonitorHook(Registries* registries) {
  constexpr int kRank = -1;  // before train_logger
  return RegisterHook(registries, {"schedule_monitor", "records what schedules have set, as metrics", kRank},
                      &MakeScheduleMonitor);
}

}  // namespace ssl
