// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/train_logger_hook.h"

#include <ATen/core/Tensor.h>

#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/progress_line.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

// At the start people look at every step; two show that data, forward, backward and update all work.
constexpr int64_t kFirstSteps = 2;
constexpr double kBytesPerMegabyte = 1e6;

double Ratio(double numerator, double denominator) { return denominator > 0.0 ? numerator / denominator : 0.0; }

absl::StatusOr<std::unique_ptr<Hook>> MakeTrainLogger(const TrainLoggerOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  return std::make_unique<TrainLoggerHook>(options.report.log_frequency);
}

}  // namespace

bool TrainLoggerHook::Due(const StepContext& context) const {
  const int64_t iteration = context.state.iteration;
  return iteration % log_frequency_ == 0 || iteration - context.first_iteration <= kFirstSteps ||
         iteration == context.state.max_iterations;
}

double TrainLoggerHook::SecondsLeft(const StepContext& context, const PerfStats& window) {
  if (has_first_step_only_) {
    seconds_ = 0.0;
    steps_ = 0;
  }
  has_first_step_only_ = steps_ == 0 && window.steps() == 1;
  seconds_ += window.Seconds(StepPart::kStepTotal);
  steps_ += window.steps();
  const int64_t left = context.state.max_iterations - context.state.iteration;
  return Ratio(seconds_, static_cast<double>(steps_)) * static_cast<double>(left);
}

absl::Status TrainLoggerHook::OnPhaseStart(StepContext& context) {
  if (!context.state.training) not_reported_ = context.perf_stats.Since(reported_);
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnLossAndMeter(StepContext& context) {
  if (context.state.training) context.metrics.Add("Training/Loss", context.loss.detach());
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnStep(StepContext& context) {
  if (!context.state.training || !Due(context)) return absl::OkStatus();
  return Report(context);
}

absl::Status TrainLoggerHook::Report(StepContext& context) {
  const PerfStats window = context.perf_stats.Since(reported_);
  const double seconds = window.Seconds(StepPart::kStepTotal);
  const TrainState& state = context.state;
  Progress progress;
  progress.epoch = state.train_phase_index + 1;
  progress.num_epochs = context.num_epochs;
  progress.step = state.iteration;
  progress.num_steps = state.max_iterations;
  if (context.optimizer != nullptr && !context.optimizer->groups().empty()) {
    progress.learning_rate = context.optimizer->groups()[0].learning_rate;
  }
  const double samples = static_cast<double>(window.steps() * context.batches_per_update * context.batch_size *
                                             context.communicator.size());
  progress.samples_per_second = Ratio(samples, seconds);
  progress.data_wait_share = Ratio(window.Seconds(StepPart::kReadSample), seconds);
  progress.seconds_left = SecondsLeft(context, window);
  progress.resident_megabytes = static_cast<double>(ReadProcessMemory().resident_bytes) / kBytesPerMegabyte;

  context.metrics.Set("Training/Learning_rate", progress.learning_rate);
  context.metrics.Set("Speed/samples_per_sec", progress.samples_per_second);
  context.metrics.Set("Speed/data_wait_share", progress.data_wait_share);
  context.metrics.Set("Speed/ETA_seconds", progress.seconds_left);
  context.metrics.Set("Memory/rss_mb", progress.resident_megabytes);
  SSL_ASSIGN_OR_RETURN(const MetricReport report,
                       context.metrics.Report(state.iteration, state.train_phase_index, context.communicator));
  reported_ = context.perf_stats;
  const auto loss = report.values.find("Training/Loss");
  SSL_RET_CHECK(loss != report.values.end(), "a step was reported without a loss");
  progress.loss = loss->second;
  const auto batch_ms = report.values.find("Speed/rolling_batch_time_ms");  // of perf_stats
  if (batch_ms != report.values.end()) progress.batch_ms = batch_ms->second;
  if (context.communicator.rank() == 0) SSL_LOG(INFO) << FormatProgress(progress);
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnPhaseEnd(StepContext& context) {
  if (!context.state.training) reported_ = context.perf_stats.Since(not_reported_);
  return AgreeOnStatus(context.metrics.Flush(), "writing metrics", context.communicator);
}

absl::Status TrainLoggerHook::OnEnd(StepContext& context) { return context.metrics.Flush(); }

absl::Status RegisterTrainLoggerHook(Registries* registries) {
  return RegisterHook(registries, {"train_logger", "progress line, metric report to the sinks"}, &MakeTrainLogger);
}

}  // namespace ssl
