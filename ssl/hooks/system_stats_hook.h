// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine is, every FREQUENCY iterations: a line in the log of rank 0 and
//
//   System/memory_used_gb, System/memory_used_percent, System/swap_used_percent   of the machine (in 2^30 bytes)
//   System/cpu_percent        of all cores together, between two looks
//   System/process_gb, System/threads   of this process
//   System/disk_free_gb       where the run keeps its files
//
// United Perception's memory_analysis, whose numbers are the first three; it looks in test phases, too. They are those
// of rank 0's machine. Stage kObserve. No state. Costs a comparison in steps between.
//
// They join the run's next report, which every sink gets. SUMMARY_WRITER `tensorboard` adds a writer of event files in
// <run directory>/LOGDIR (summary_writer.h).
#ifndef SSL_HOOKS_SYSTEM_STATS_HOOK_H_
#define SSL_HOOKS_SYSTEM_STATS_HOOK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/summary_writer.h"
#include "ssl/hooks/system_usage.h"

namespace ssl {

// The section HOOKS.SYSTEM_STATS (ours).
struct SystemStatsOptions : public OncePerRunOptions {
  bool monitor_system_stats = false;
  int64_t frequency = 20;
  SummaryWriterKeys writer;

  absl::string_view section() const override { return "HOOKS.SYSTEM_STATS"; }
  bool enabled() const override { return monitor_system_stats; }
  void VisitFields(FieldVisitor& visitor) override;
  std::vector<std::string> leaves() const override { return {writer.files()}; }
};

class SystemStatsHook : public Hook {
 public:
  // directory: whose disk is looked at; "" for none. make_writer: null for no sink of its own.
  SystemStatsHook(const SystemStatsOptions& options, std::string directory, MakeSummaryWriter make_writer = nullptr)
      : options_(options), directory_(std::move(directory)), make_writer_(std::move(make_writer)) {}

  absl::string_view name() const override { return "system_stats"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;

 private:
  const SystemStatsOptions options_;
  const std::string directory_;
  const MakeSummaryWriter make_writer_;
  CpuTimes cpu_;  // at the last look
};

absl::Status RegisterSystemStatsHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_SYSTEM_STATS_HOOK_H_
