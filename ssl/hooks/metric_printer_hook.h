// SPDX-License-Identifier: Apache-2.0
//
// LiBai's and detectron2's console line (CommonMetricPrinter), beside that of train_logger: on rank 0, every `period`
// iterations and at the last. Stage kReport, after train_logger, which measures the times.
//
//   eta: 0:01:05  iteration: 40/500  consumed_samples: 320  Training/Loss: 4.613  time: 0.1412 s/iter  data_time:
//   0.0021 s/iter  total_throughput: 56.66 samples/s  lr: 1.00e-02  max_mem: 812M
//
// - eta: the median time of the last 1000 iterations, times the iterations that are left; absent while there is no
//   time, or no last iteration. As of train_logger, times leave out the first iterations of a process and test phases.
// - iteration: those done, where LiBai counts from 0: its line "19" is "20" here.
// - each scalar whose name contains "loss" (in any case) or "[metric]": the median of its last 200 values on rank 0.
// - time: mean of all iterations; data_time: mean of the last 20. total_throughput: samples of an update on all ranks
//   over `time`. max_mem: most memory of the process, which LiBai's line never has.
#ifndef SSL_HOOKS_METRIC_PRINTER_HOOK_H_
#define SSL_HOOKS_METRIC_PRINTER_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// Of the list `hooks`.
struct MetricPrinterOptions : public OncePerRunOptions {
  int64_t period = 20;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

class MetricPrinterHook : public Hook {
 public:
  // period: iterations between lines.
  explicit MetricPrinterHook(int64_t period) : period_(period) {}

  absl::string_view name() const override { return "metric_printer"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStep(StepContext& context) override;

 private:
  const int64_t period_;
};

absl::Status RegisterMetricPrinterHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_METRIC_PRINTER_HOOK_H_
