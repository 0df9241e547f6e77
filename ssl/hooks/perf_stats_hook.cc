// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/perf_stats_hook.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/training_pause.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Hook>> MakePerfStats(const PerfStatsOptions& options, const ConfigNode& params,
                                                    const BuildContext& context) {
  return std::make_unique<PerfStatsHook>(options);
}

}  // namespace

void PerfStatsOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("MONITOR_PERF_STATS", &monitor_perf_stats, Doc("log how long the parts of a step take").MayChange());
  visitor.Field("PERF_STAT_FREQUENCY", &perf_stat_frequency,
                Doc("batches between these tables, -1 for phase ends only").AtLeast(-1).MayChange());
  visitor.Field("ROLLING_BTIME_FREQ", &rolling_btime_freq,
                Doc("last steps whose mean batch time is reported, -1 for no report").AtLeast(-1).MayChange());
}

std::vector<PlannedAction> PerfStatsHook::Plan() const {
  std::vector<PlannedAction> plan;
  const auto add = [&plan](const std::string& what, Cadence::Unit unit, int64_t every) {
    if (every > 0) plan.push_back({what, {unit, every, 1, 0, false}});
  };
  // It counts batches of each phase anew, which no cadence of the run does.
  const int64_t every = options_.perf_stat_frequency;
  const std::string between =
      every > 0 ? absl::StrCat(", and within it those of every ", every, " batches so far") : "";
  if (options_.monitor_perf_stats) add(absl::StrCat("tells the times of its steps", between), Cadence::Unit::kEpoch, 1);
  add("reports the mean batch time", Cadence::Unit::kUpdate, options_.rolling_btime_freq > 0 ? 1 : 0);
  return plan;
}

absl::Status PerfStatsHook::OnPhaseStart(StepContext& context) {
  phase_begin_ = context.perf_stats;
  phase_begin_time_ = step_begin_ = context.perf_stats.TrainingNow();
  return absl::OkStatus();
}

absl::Status PerfStatsHook::OnStep(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  if (options_.rolling_btime_freq > 0) SetRollingMean(context);
  if (!options_.monitor_perf_stats || options_.perf_stat_frequency < 1) return absl::OkStatus();
  const int64_t batches = OfPhase(context).steps() * context.batches_per_update;
  const int64_t batches_before = batches - context.batches_per_update;
  const bool due = batches / options_.perf_stat_frequency > batches_before / options_.perf_stat_frequency;
  if (due) LogTable(context);
  return absl::OkStatus();
}

absl::Status PerfStatsHook::OnPhaseEnd(StepContext& context) {
  const bool has_steps = context.state.training && OfPhase(context).steps() > 0;
  if (options_.monitor_perf_stats && has_steps) LogTable(context);
  return absl::OkStatus();
}

void PerfStatsHook::LogTable(const StepContext& context) const {
  if (context.communicator.rank() != 0) return;
  WaitForDevice(context.loss.device());
  const PerfStats stats = OfPhase(context);
  const int64_t batches = stats.steps() * context.batches_per_update;
  const absl::Duration seconds = context.perf_stats.TrainingNow() - phase_begin_time_;
  SSL_LOG(INFO) << absl::StrFormat("Average train batch time (ms) for %d batches: %.2f\n%s", batches,
                                   absl::ToDoubleMilliseconds(seconds) / static_cast<double>(batches), stats.Table());
}

void PerfStatsHook::SetRollingMean(StepContext& context) {
  const absl::Time begin = std::exchange(step_begin_, context.perf_stats.TrainingNow());
  const double batch_ms =
      absl::ToDoubleMilliseconds(step_begin_ - begin) / static_cast<double>(context.batches_per_update);
  if (rolling_steps_ < options_.rolling_btime_freq) {
    step_ms_.push_back(batch_ms);
  } else {
    step_ms_[rolling_steps_ % options_.rolling_btime_freq] = batch_ms;
  }
  ++rolling_steps_;
  const double sum = std::accumulate(step_ms_.begin(), step_ms_.end(), 0.0);
  context.metrics.Set("Speed/rolling_batch_time_ms", sum / static_cast<double>(step_ms_.size()));
}

absl::Status RegisterPerfStatsHook(Registries* registries) {
  return RegisterHook(registries, {"perf_stats", "logs how long the parts of a step take; metric of the batch time"},
                      &MakePerfStats);
}

}  // namespace ssl
