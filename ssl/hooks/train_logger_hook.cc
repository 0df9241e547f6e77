// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/train_logger_hook.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

// At the start people look at every step; two show that data, forward, backward and update all work.
constexpr int64_t kFirstSteps = 2;
constexpr double kBytesPerMegabyte = 1e6;
constexpr absl::Duration kSignOfLife = absl::Minutes(5);

double Ratio(double numerator, double denominator) { return denominator > 0.0 ? numerator / denominator : 0.0; }

absl::StatusOr<std::unique_ptr<Hook>> MakeTrainLogger(const TrainLoggerOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(MakeSummaryWriter writer, SummaryWriterFor(options.writer, params, context));
  std::string written = writer == nullptr ? "" : options.writer.files();
  return std::make_unique<TrainLoggerHook>(options.report.log_frequency, options.skip_first_k, std::move(writer),
                                           std::move(written));
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

TrainLoggerHook::Window TrainLoggerHook::BeginWindow(const StepContext& context) {
  return {context.state.iteration, context.perf_stats.TrainingNow()};
}

absl::Status TrainLoggerHook::OnPhaseStart(StepContext& context) {
  step_begin_ = context.perf_stats;
  if (since_report_.begin >= 0) return absl::OkStatus();
  told_ = context.perf_stats.Now();
  since_report_ = since_warm_up_ = BeginWindow(context);
  step_begin_time_ = since_report_.begin_time;
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnLossAndMeter(StepContext& context) {
  if (context.state.training) context.metrics.Add("Training/Loss", context.loss.detach());
  return absl::OkStatus();
}

absl::Status TrainLoggerHook::OnStep(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  AddTimes(context);
  const bool warmed_up = context.state.iteration - context.first_iteration == skip_first_k_;
  if (Due(context)) {
    SSL_RETURN_IF_ERROR(Report(context));
  } else if (warmed_up) {
    WaitForDevice(context.loss.device());
    since_report_ = BeginWindow(context);
  }
  if (warmed_up) since_warm_up_ = since_report_;
  return absl::OkStatus();
}

void TrainLoggerHook::AddTimes(StepContext& context) {
  const PerfStats step = context.perf_stats.Since(step_begin_);
  step_begin_ = context.perf_stats;
  const absl::Time begin = std::exchange(step_begin_time_, context.perf_stats.TrainingNow());
  since_report_.data_seconds += step.Seconds(StepPart::kReadSample);
  since_report_.device_seconds += step.Seconds(StepPart::kWaitForDevice);
  if (context.state.iteration - context.first_iteration <= skip_first_k_) return;
  context.metrics.Add(kStepSeconds, absl::ToDoubleSeconds(step_begin_time_ - begin));
  context.metrics.Add(kDataSeconds, step.Seconds(StepPart::kReadSample));
}

absl::Status TrainLoggerHook::Report(StepContext& context) {
  const absl::Time queued = context.perf_stats.TrainingNow();
  WaitForDevice(context.loss.device());
  const Window now = BeginWindow(context);
  const TrainState& state = context.state;
  const auto steps = static_cast<double>(now.begin - since_report_.begin);
  const double seconds = absl::ToDoubleSeconds(now.begin_time - since_report_.begin_time);
  const double waited = since_report_.device_seconds + absl::ToDoubleSeconds(now.begin_time - queued);
  StepProgress progress;
  progress.epoch = state.train_phase_index + 1;
  progress.num_epochs = context.num_epochs;
  progress.step = state.iteration;
  progress.num_steps = state.max_iterations;
  if (context.optimizer != nullptr && !context.optimizer->groups().empty()) {
    progress.learning_rate = context.optimizer->groups()[0].learning_rate;
  }
  const auto samples_per_step =
      static_cast<double>(context.batches_per_update * context.batch_size * context.communicator.size());
  progress.samples_per_second = Ratio(steps * samples_per_step, seconds);
  progress.data_wait_share = Ratio(since_report_.data_seconds, seconds);
  if (!context.loss.is_cpu()) progress.device_wait_share = Ratio(waited, seconds);
  const double left = static_cast<double>(state.max_iterations - state.iteration);
  progress.seconds_left = left * Ratio(absl::ToDoubleSeconds(now.begin_time - since_warm_up_.begin_time),
                                       static_cast<double>(now.begin - since_warm_up_.begin));
  progress.resident_bytes = ReadProcessMemory().resident_bytes;

  context.metrics.Set("Training/Learning_rate", progress.learning_rate);
  context.metrics.Set("Speed/samples_per_sec", progress.samples_per_second);
  context.metrics.Set("Speed/data_wait_share", progress.data_wait_share);
  context.metrics.Set("Speed/device_wait_share", progress.device_wait_share.value_or(0.0));
  context.metrics.Set("Speed/ETA_seconds", progress.seconds_left);
  context.metrics.Set("Memory/rss_mb", static_cast<double>(progress.resident_bytes) / kBytesPerMegabyte);
  SSL_ASSIGN_OR_RETURN(const MetricReport report,
                       context.metrics.Report(state.iteration, state.train_phase_index, context.communicator));
  since_report_ = now;
  const auto loss = report.values.find("Training/Loss");
  SSL_RET_CHECK(loss != report.values.end(), "a step was reported without a loss");
  progress.loss = loss->second;
  const auto batch_ms = report.values.find("Speed/rolling_batch_time_ms");  // of perf_stats
  if (batch_ms != report.values.end()) progress.batch_ms = batch_ms->second;
  Tell(progress, context);
  return absl::OkStatus();
}

void TrainLoggerHook::Tell(const StepProgress& progress, const StepContext& context) {
  const int64_t rank = context.communicator.rank();
  if (rank == 0) {
    SSL_LOG(INFO) << FormatProgress(progress);
    return;
  }
  const absl::Time now = context.perf_stats.Now();
  if (now - told_ < kSignOfLife) return;
  told_ = now;
  SSL_LOG(INFO) << "rank " << rank << ": step " << FormatCount(progress.step) << "/" << FormatCount(progress.num_steps);
}

absl::Status TrainLoggerHook::OnPhaseEnd(StepContext& context) {
  // The end of a phase reads values from the device, and waits for them within the window.
  if (context.state.training) {
    since_report_.device_seconds += context.perf_stats.Since(step_begin_).Seconds(StepPart::kWaitForDevice);
  }
  return AgreeOnStatus(context.metrics.Flush(), "writing metrics", context.communicator);
}

absl::Status TrainLoggerHook::OnEnd(StepContext& context) { return context.metrics.Flush(); }

absl::Status RegisterTrainLoggerHook(Registries* registries) {
  return RegisterHook(registries, {"train_logger", "progress line, metric report to the sinks"}, &MakeTrainLogger);
}

}  // namespace ssl
