// SPDX-License-Identifier: Apache-2.0
//
// Records what the schedules of a run have set, as LiBai's and detectron2's LRScheduler do: metrics `Training/lr` and,
// where these have a schedule, `Training/weight_decay` and `Training/momentum`. Stage kReport, before the logger that
// reports them.
//
// The schedules themselves belong to the optimizer's groups and step with the updates whether the hook is there or not
// (OPTIMIZER.param_schedulers), so that a run that goes on has the values of its iteration. Recorded is what the update
// was made with. Of several groups it is the one with the most parameters; when all have one, the most frequent
// learning rate. `Training/Learning_rate` of train_logger is that of the first group, as in VISSL.
#ifndef SSL_HOOKS_SCHEDULE_MONITOR_HOOK_H_
#define SSL_HOOKS_SCHEDULE_MONITOR_HOOK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/register_component.h"

namespace ssl {

// Has no keys: an entry of the list `hooks` turns it on.
struct ScheduleMonitorOptions : public OncePerRunOptions {
  absl::string_view section() const override { return kHookList; }
  bool enabled() const override { return false; }
};

class ScheduleMonitorHook : public Hook {
 public:
  absl::string_view name() const override { return "schedule_monitor"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnUpdate(StepContext& context) override;
};

absl::Status RegisterScheduleMonitorHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_SCHEDULE_MONITOR_HOOK_H_
