// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/train_logger_hook.h"

#include <ATen/core/Tensor.h>

#include "absl/strings/str_cat.h"
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
  SSL_ASSIGN_OR_RETURN(MakeSummaryWriter writer, SummaryWriterFor(options.writer, params, context));
  std::string written = writer == nullptr ? "" : options.writer.files();
  return std::make_unique<TrainLoggerHook>(options.report.log_frequency, options.skip_first_k, std::move(writer),
                                           std::move(written));
}

// What the steps that are left take at the mean rate so far; of `window` while no step was timed.
double SecondsLeft(StepContext& context, const PerfStats& window) {
  const MetricHistory* times = context.metrics.History(kStepSeconds);
  const double of_window = Ratio(window.Seconds(StepPart::kStepTotal), static_cast<double>(window.steps()));
  const int64_t left = context.state.max_iterations - context.state.iteration;
  return (times != nullptr ? times->GlobalMean() : of_window) * static_cast<double>(left);
}

}  // namespace

void TrainLoggerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SKIP_FIRST_K", &skip_first_k,
                Doc("first iterations of a process that timing leaves out (ours)").AtLeast(0).MayChange());
  writer.VisitFields(visitor);
}

std::vector<PlannedAction> TrainLoggerHook::Plan() const {
  return {{"reports metrics (and of updates 1 and 2)",
           {Cadence::Unit::kUpdate, log_frequency_, 1, 0, true},
           false,
           written_}};
}

absl::Status TrainLoggerHook::OnStart(StepContext& context) {
  constexpr MetricRule kSlowestRank = {MetricReduction::kMax, /*median_window=*/20};
  if (make_writer_ != nullptr) context.metrics.AddSink(make_writer_(context.first_iteration));
  SSL_RETURN_IF_ERROR(context.metrics.Declare(kStepSeconds, kSlowestRank));
  return context.metrics.Declare(kDataSeconds, kSlowestRank);
}

bool TrainLoggerHook::Due(const StepContext& context) const {
  const int64_t iteration = context.state.iteration;
  return iteration % log_frequency_ == 0 || iteration - context.first_iteration <= kFirstSteps ||
         iteration == context.state.max_iterations;
}

absl::Status TrainLoggerHook::OnPhaseStart(StepContext& context) {
  step_begin_ = context.perf_stats;
  if (!context.state.training) not_reported_ = context.perf_stats.Since(reported_);
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnLossAndMeter(StepContext& context) {
  if (context.state.training) context.metrics.Add("Training/Loss", context.loss.detach());
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnStep(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  AddTimes(context);
  if (Due(context)) SSL_RETURN_IF_ERROR(Report(context));
  const bool warmed_up = context.state.iteration - context.first_iteration == skip_first_k_;
  if (warmed_up) reported_ = context.perf_stats;  // the speed of the next report is that of the steps behind these
  return absl::OkStatus();
}

void TrainLoggerHook::AddTimes(StepContext& context) {
  const PerfStats step = context.perf_stats.Since(step_begin_);
  step_begin_ = context.perf_stats;
  if (context.state.iteration - context.first_iteration <= skip_first_k_) return;
  context.metrics.Add(kStepSeconds, step.Seconds(StepPart::kStepTotal));
  context.metrics.Add(kDataSeconds, step.Seconds(StepPart::kReadSample));
}

absl::Status TrainLoggerHook::Report(StepContext& context) {
  const PerfStats window = context.perf_stats.Since(reported_);
  const double seconds = window.Seconds(StepPart::kStepTotal);
  const TrainState& state = context.state;
  StepProgress progress;
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
