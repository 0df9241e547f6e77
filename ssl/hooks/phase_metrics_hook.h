// SPDX-License-Identifier: Apache-2.0
//
// Tells what a phase has measured (context.meter_reports) when it ends. Stage kPersist, ahead of what saves:
// hooks of all stages before, a host's as well, have added their reports. Three places:
//
// - <run directory>/metrics.json: one JSON object a line for each phase, as VISSL writes it,
//     {"iteration":20,"phase_idx":1,"train_phase_idx":0,"test_accuracy_list_meter":{"top_1":{"0":71.2}}}
//   with "train_<meter>" or "test_<meter>" for each meter. A value without an output stands under its metric directly;
//   values that share metric and output are a list. NaN is null. What a resumed run measures again is dropped first.
// - the log, for people: "test | epoch 1/2 | accuracy_list_meter | top_1 71.2000".
// - the metric sinks: "Testing/accuracy_list_meter_top_1_Output_0" ("Training/..."), not for lists. They get a report
//   of their own after each phase; the window of what train_logger reports stays open.
//
// What hooks of a program's own report ("Host/...") is averaged over the ranks first (host_values.h), for the hooks
// behind this one, too. Reported in OnStep or OnPhaseStart, it goes to the sinks alone.
#ifndef SSL_HOOKS_PHASE_METRICS_HOOK_H_
#define SSL_HOOKS_PHASE_METRICS_HOOK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/sinks/json_lines_file.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct PhaseMetricsOptions : public OncePerRunOptions {
  absl::string_view section() const override { return ""; }
  bool enabled() const override { return true; }
  std::vector<std::string> leaves() const override { return {"metrics.json"}; }
};

class PhaseMetricsHook : public Hook {
 public:
  // path: of metrics.json; "" for a run that keeps no files. Rank 0 writes it. The file system outlives the hook.
  PhaseMetricsHook(FileSystem& file_system, const std::string& path);

  absl::string_view name() const override { return "phase_metrics"; }
  HookStage stage() const override { return HookStage::kPersist; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnPhaseStart(StepContext& context) override { return OnStep(context); }
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  absl::Status Write(const StepContext& context);

  std::unique_ptr<JsonLinesFile> file_;  // null without a path
};

absl::Status RegisterPhaseMetricsHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_PHASE_METRICS_HOOK_H_
