// SPDX-License-Identifier: Apache-2.0
//
// Reports progress: one line on the console of rank 0 and one MetricReport to the sinks, every LOG_FREQUENCY
// iterations, at the first two steps of a process and at the last. Stage kReport.
//
// It collects the loss of every step as a tensor and reads it from the device only when a line is due, so the loss that
// it shows is the mean since the last line over all ranks. Metrics: Training/Loss, Training/Learning_rate,
// Speed/samples_per_sec (all ranks), Speed/data_wait_share, Speed/device_wait_share, Speed/ETA_seconds, Memory/rss_mb
// (rank 0's process). Speed/step_seconds and Speed/data_seconds (of the slowest rank: the median of its last 20
// iterations; not there while all are left out of timing).
//
// Speeds are those of the clock: a report waits until the device has done all steps, and then looks at the time of
// training since the report before (PerfStats::TrainingNow), in which test phases, evaluations and saves do not count.
// Time left is what the remaining steps take at the rate since the warm-up, by the same clock. The share of data is
// that in which the loader had no batch ready; that of the device, in which the host waited for a buffer of it or, in a
// report, for its work: near 1 - data where the device is what limits the speed.
//
// Timing leaves out the first SKIP_FIRST_K iterations of a process, which warm up; a report before their end has no
// others and tells of these. (United Perception's train_val_logger: there SKIP_FIRST_K has no effect,
// and the command's display replaces freq. Here both do what is documented.)
//
// The other ranks tell, in their own logs, which step they are at: with a report, every five minutes.
//
// SUMMARY_WRITER `tensorboard` adds a writer of event files in <run directory>/LOGDIR beside the configured sinks.
#ifndef SSL_HOOKS_TRAIN_LOGGER_HOOK_H_
#define SSL_HOOKS_TRAIN_LOGGER_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/registries.h"
#include "ssl/core/shared_options.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/progress_line.h"
#include "ssl/hooks/summary_writer.h"

namespace ssl {

// What it adds in each step that is timed; for hooks that show their history.
inline constexpr absl::string_view kStepSeconds = "Speed/step_seconds";
inline constexpr absl::string_view kDataSeconds = "Speed/data_seconds";

// LOG_FREQUENCY, and the section HOOKS.TRAIN_LOGGER (ours).
struct TrainLoggerOptions : public OncePerRunOptions {
  ReportOptions report;
  int64_t skip_first_k = 1;
  SummaryWriterKeys writer;

  absl::string_view section() const override { return "HOOKS.TRAIN_LOGGER"; }
  bool enabled() const override { return true; }
  void VisitFields(FieldVisitor& visitor) override;
  std::vector<SharedOptions> shared() override { return {{"", &report}}; }
  std::vector<std::string> leaves() const override { return {writer.files()}; }
};

class TrainLoggerHook : public Hook {
 public:
  // log_frequency: iterations between lines. skip_first_k: first iterations of the process that timing leaves out.
  // make_writer: null for no sink of its own. written: its files, in the run's directory.
  explicit TrainLoggerHook(int64_t log_frequency, int64_t skip_first_k = 1, MakeSummaryWriter make_writer = nullptr,
                           std::string written = "")
      : log_frequency_(log_frequency),
        skip_first_k_(skip_first_k),
        make_writer_(std::move(make_writer)),
        written_(std::move(written)) {}

  absl::string_view name() const override { return "train_logger"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  // Makes what the sinks hold durable.
  absl::Status OnPhaseEnd(StepContext& context) override;
  absl::Status OnEnd(StepContext& context) override;

 private:
  // Steps that were done from some moment on.
  struct Window {
    int64_t begin = -1;     // iteration; -1: there was none yet
    absl::Time begin_time;  // of training
    double data_seconds = 0.0;
    double device_seconds = 0.0;
  };

  bool Due(const StepContext& context) const;
  static Window BeginWindow(const StepContext& context);
  void AddTimes(StepContext& context);
  absl::Status Report(StepContext& context);
  void Tell(const StepProgress& progress, const StepContext& context);

  const int64_t log_frequency_;
  const int64_t skip_first_k_;
  const MakeSummaryWriter make_writer_;
  const std::string written_;
  PerfStats step_begin_;
  absl::Time step_begin_time_;
  Window since_report_;
  Window since_warm_up_;
  absl::Time told_;  // the step, by a rank other than 0
};

absl::Status RegisterTrainLoggerHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_TRAIN_LOGGER_HOOK_H_
