// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/system_stats_hook.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr double kBytesPerGb = 1024.0 * 1024.0 * 1024.0;

absl::StatusOr<std::unique_ptr<Hook>> MakeSystemStats(const SystemStatsOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(MakeSummaryWriter writer, SummaryWriterFor(options.writer, params, context));
  return std::make_unique<SystemStatsHook>(options, context.run_directory, std::move(writer));
}

}  // namespace

void SystemStatsOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("MONITOR_SYSTEM_STATS", &monitor_system_stats,
                Doc("report memory, processor and disk of the machine (ours)").MayChange());
  visitor.Field("FREQUENCY", &frequency, Doc("iterations between two looks (ours)").AtLeast(1).MayChange());
  writer.VisitFields(visitor);
}

std::vector<PlannedAction> SystemStatsHook::Plan() const {
  return {{"looks at the machine",
           {Cadence::Unit::kUpdate, options_.frequency, 1, 0, false},
           false,
           make_writer_ == nullptr ? "" : options_.writer.files()}};
}

absl::Status SystemStatsHook::OnStart(StepContext& context) {
  if (make_writer_ != nullptr) context.metrics.AddSink(make_writer_(context.first_iteration));
  cpu_ = ParseCpuTimes(ReadProcFile("/proc/stat"));
  return absl::OkStatus();
}

absl::Status SystemStatsHook::OnStep(StepContext& context) {
  const bool due = context.state.training && context.state.iteration % options_.frequency == 0;
  // The sinks are rank 0's.
  if (!due || context.communicator.rank() != 0) return absl::OkStatus();
  const MemoryUsage memory = ParseMemoryUsage(ReadProcFile("/proc/meminfo"));
  const CpuTimes cpu = ParseCpuTimes(ReadProcFile("/proc/stat"));
  const double busy = BusyPercent(cpu_, cpu);
  cpu_ = cpu;
  const double process_gb = static_cast<double>(ReadProcessMemory().resident_bytes) / kBytesPerGb;
  const int64_t threads = ParseThreads(ReadProcFile("/proc/self/status"));
  const double disk_gb = static_cast<double>(FreeDiskBytes(directory_).value_or(0)) / kBytesPerGb;
  context.metrics.Set("System/memory_used_gb", memory.used_gb);
  context.metrics.Set("System/memory_used_percent", memory.used_percent);
  context.metrics.Set("System/swap_used_percent", memory.swap_percent);
  context.metrics.Set("System/cpu_percent", busy);
  context.metrics.Set("System/process_gb", process_gb);
  context.metrics.Set("System/threads", static_cast<double>(threads));
  if (!directory_.empty()) context.metrics.Set("System/disk_free_gb", disk_gb);
  SSL_LOG(INFO) << absl::StrFormat(
      "system: memory %.2f GiB (%.1f %%), swap %.1f %%, processor %.1f %%; process %.2f GiB, %d threads; disk %.1f GiB "
      "free",
      memory.used_gb, memory.used_percent, memory.swap_percent, busy, process_gb, threads, disk_gb);
  return absl::OkStatus();
}

absl::Status RegisterSystemStatsHook(Registries* registries) {
  return RegisterHook(registries, {"system_stats", "reports memory, processor and disk of the machine"},
                      &MakeSystemStats);
}

}  // namespace ssl
