// SPDX-License-Identifier: Apache-2.0
//
// Tells how long the parts of a training step take (VISSL's LogPerfTimeMetricsHook), on rank 0. Stage kTiming.
//
// With MONITOR_PERF_STATS, one message with the mean time of a batch and a line for each part (perf_stats.h), of the
// phase so far, every PERF_STAT_FREQUENCY batches and at the end of each train phase. With ROLLING_BTIME_FREQ, the
// metric Speed/rolling_batch_time_ms: the mean time of a batch over that many steps; train_logger shows it, too. Both
// times of a batch are those of the clock (PerfStats::TrainingNow), with what hooks do between steps; the table's
// device has done its work by then.
#ifndef SSL_HOOKS_PERF_STATS_HOOK_H_
#define SSL_HOOKS_PERF_STATS_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// The section HOOKS.PERF_STATS.
struct PerfStatsOptions : public OncePerRunOptions {
  bool monitor_perf_stats = false;
  int64_t perf_stat_frequency = -1;  // below 1: at phase ends only
  int64_t rolling_btime_freq = -1;   // below 1: no metric

  absl::string_view section() const override { return "HOOKS.PERF_STATS"; }
  bool enabled() const override { return monitor_perf_stats || rolling_btime_freq > 0; }
  void VisitFields(FieldVisitor& visitor) override;
};

class PerfStatsHook : public Hook {
 public:
  explicit PerfStatsHook(const PerfStatsOptions& options) : options_(options) {}

  absl::string_view name() const override { return "perf_stats"; }
  HookStage stage() const override { return HookStage::kTiming; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  PerfStats OfPhase(const StepContext& context) const { return context.perf_stats.Since(phase_begin_); }
  void LogTable(const StepContext& context) const;
  void SetRollingMean(StepContext& context);

  const PerfStatsOptions options_;
  PerfStats phase_begin_;  // what the process had done then
  absl::Time phase_begin_time_;
  absl::Time step_begin_;
  int64_t rolling_steps_ = 0;    // that step_ms_ has seen
  std::vector<double> step_ms_;  // ring: batch time of each of the last steps, across phases
};

absl::Status RegisterPerfStatsHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_PERF_STATS_HOOK_H_
