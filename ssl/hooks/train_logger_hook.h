// SPDX-License-Identifier: Apache-2.0
//
// Reports progress: one line on the console of rank 0 and one MetricReport to the sinks, every LOG_FREQUENCY
// iterations, at the first two steps of a process and at the last. Stage kReport.
//
// It collects the loss of every step as a tensor and reads it from the device only when a line is due, so the loss that
// it shows is the mean since the last line over all ranks. Metrics: Training/Loss, Training/Learning_rate,
// Speed/samples_per_sec (all ranks), Speed/data_wait_share, Speed/ETA_seconds, Memory/rss_mb (rank 0's process).
// Time left is what the remaining steps take at the mean rate of this process, test phases not counted.
#ifndef SSL_HOOKS_TRAIN_LOGGER_HOOK_H_
#define SSL_HOOKS_TRAIN_LOGGER_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/registries.h"
#include "ssl/core/shared_options.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// LOG_FREQUENCY.
struct TrainLoggerOptions : public OncePerRunOptions {
  ReportOptions report;

  absl::string_view section() const override { return ""; }
  bool enabled() const override { return true; }
  std::vector<SharedOptions> shared() override { return {{"", &report}}; }
};

class TrainLoggerHook : public Hook {
 public:
  // log_frequency: iterations between lines.
  explicit TrainLoggerHook(int64_t log_frequency) : log_frequency_(log_frequency) {}

  absl::string_view name() const override { return "train_logger"; }
  HookStage stage() const override { return HookStage::kReport; }

  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  // Makes what the sinks hold durable.
  absl::Status OnPhaseEnd(StepContext& context) override;
  absl::Status OnEnd(StepContext& context) override;

 private:
  bool Due(const StepContext& context) const;
  absl::Status Report(StepContext& context);
  // Expected seconds to the end; the first step, which warms up, is left out once there is another.
  double SecondsLeft(const StepContext& context, const PerfStats& window);

  const int64_t log_frequency_;
  // Of this process: speed does not belong to the run's state.
  double seconds_ = 0.0;
  int64_t steps_ = 0;
  bool has_first_step_only_ = false;
  PerfStats reported_;      // what the last report, and test phases, have covered of context.perf_stats
  PerfStats not_reported_;  // while a test phase runs: what the train phase before it has not reported yet
};

absl::Status RegisterTrainLoggerHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_TRAIN_LOGGER_HOOK_H_
