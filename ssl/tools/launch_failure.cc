// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_failure.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/host_name.h"
#include "ssl/config/node.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/report_file.h"

namespace ssl {
namespace {

// What one rank has left of its failure in this start; nothing of an earlier one's.
std::optional<ConfigNode> ReportOf(const RankEnd& end, const std::string& run_directory, const std::string& command,
                                   FileSystem& file_system) {
  const std::string name = CommandFailureFile(command);
  const std::string path = end.rank == 0 ? absl::StrCat(run_directory, "/", name)
                                         : absl::StrCat(run_directory, "/logs/rank", end.rank, "_", name);
  absl::StatusOr<ConfigNode> report = ReadResults(path, file_system);
  if (!report.ok()) return std::nullopt;
  const ConfigNode* pid = report->Find("pid");
  if (pid == nullptr || pid->AsInt().value_or(-1) != end.pid) return std::nullopt;
  return *std::move(report);
}

// Whether rank 0 was the last to lock the directory. The lock itself went with its process.
bool HadDirectory(const std::vector<RankEnd>& ends, const std::string& run_directory, FileSystem& file_system) {
  const absl::StatusOr<std::string> holder = file_system.Read(absl::StrCat(run_directory, "/.lock"));
  return holder.ok() && std::any_of(ends.begin(), ends.end(), [&](const RankEnd& end) {
           return end.rank == 0 && absl::StartsWith(*holder, absl::StrCat("process ", end.pid, " "));
         });
}

// Whether the run's report is to stay. These ranks have only seen a connection break: where rank 0 is on another host,
// that host's launcher writes of it, and a rank of another host that is named already is the culprit.
bool IsAnotherHosts(const LaunchOutcome& outcome, const std::string& report_path, FileSystem& file_system) {
  const auto is_ours = [&](int64_t rank) {
    return std::any_of(outcome.ends.begin(), outcome.ends.end(), [&](const RankEnd& end) { return end.rank == rank; });
  };
  if (outcome.first_failure->code() != kExitPeer) return false;
  if (!is_ours(0)) return true;
  const absl::StatusOr<ConfigNode> report = ReadResults(report_path, file_system);
  const ConfigNode* rank = report.ok() ? report->Find("rank") : nullptr;
  return rank != nullptr && !is_ours(rank->AsInt().value_or(0));
}

void Copy(const ConfigNode& from, absl::string_view key, ConfigNode* to) {
  const ConfigNode* value = from.Find(key);
  if (value != nullptr) to->Set(key, *value);
}

// Of a rank that has left none: how it ended, and where the others stood.
ConfigNode ReportOfEnd(const RankEnd& end, const ConfigNode& of_another, int64_t world_size) {
  const absl::Time now = absl::Now();
  ConfigNode report = ConfigNode::Map();
  report.Set("code", ConfigNode::FromString(end.signal != 0 ? "SIGNAL" : "UNKNOWN"));
  report.Set("message", ConfigNode::FromString(absl::StrCat(DescribeEnd(end), ", and left no report")));
  report.Set("exit_code", ConfigNode::FromInt(end.code()));
  if (end.signal != 0) report.Set("signal", ConfigNode::FromInt(end.signal));
  report.Set("time", ConfigNode::FromString(absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
  report.Set("unix_time", ConfigNode::FromInt(absl::ToUnixSeconds(now)));
  for (const char* key : {"phase", "step", "epoch", "last_checkpoint", "engine"}) Copy(of_another, key, &report);
  report.Set("rank", ConfigNode::FromInt(end.rank));
  report.Set("world_size", ConfigNode::FromInt(world_size));
  report.Set("pid", ConfigNode::FromInt(end.pid));
  report.Set("host", ConfigNode::FromString(HostName("unknown")));
  return report;
}

}  // namespace

int64_t NewestStep(const std::string& run_directory, FileSystem& file_system) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const CheckpointStore store({CheckpointDirectory(run_directory), 0, ""}, file_system, *communicator);
  const absl::StatusOr<std::vector<int64_t>> steps = store.Iterations();
  return steps.ok() && !steps->empty() ? steps->back() : 0;
}

void WriteLaunchFailure(const std::string& run_directory, const std::string& command, int64_t world_size,
                        const LaunchOutcome& outcome, FileSystem& file_system) {
  if (!outcome.first_failure.has_value() || outcome.exit_code == kExitConfiguration) return;
  const std::string path = absl::StrCat(run_directory, "/", CommandFailureFile(command));
  if (IsAnotherHosts(outcome, path, file_system)) return;
  const RankEnd& failed = *outcome.first_failure;
  std::optional<ConfigNode> report = ReportOf(failed, run_directory, command, file_system);
  std::optional<ConfigNode> of_another;
  for (const RankEnd& end : outcome.ends) {
    if (!of_another.has_value()) of_another = ReportOf(end, run_directory, command, file_system);
  }
  if (!of_another.has_value() && !HadDirectory(outcome.ends, run_directory, file_system)) return;
  if (!report.has_value()) report = ReportOfEnd(failed, of_another.value_or(ConfigNode::Map()), world_size);
  const int64_t step = NewestStep(run_directory, file_system);
  if (step > 0 && report->Find("last_checkpoint") == nullptr) {
    const std::string directory = absl::StrCat(CheckpointDirectory(run_directory), "/step_", step);
    report->SetPath("last_checkpoint.directory", ConfigNode::FromString(directory));
    report->SetPath("last_checkpoint.step", ConfigNode::FromInt(step));
  }
  report->Set("restarts", ConfigNode::FromInt(outcome.restarts));
  ReportFile(path).Replace(ToJson(*report));
}

}  // namespace ssl
