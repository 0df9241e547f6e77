// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_failure.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/host_name.h"
#include "ssl/config/node.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/failure_report.h"
#include "ssl/tools/report_file.h"

namespace ssl {
namespace {

std::string ReportPath(int64_t rank, const std::string& run_directory, const std::string& command) {
  const std::string name = CommandFailureFile(command);
  return rank == 0 ? absl::StrCat(run_directory, "/", name)
                   : absl::StrCat(run_directory, "/", kRankFolder, "/rank", rank, "_", name);
}

// What one rank has left of its failure in this start; nothing of an earlier one's.
std::optional<ConfigNode> ReportOf(const RankEnd& end, const std::string& run_directory, const std::string& command,
                                   FileSystem& file_system) {
  absl::StatusOr<ConfigNode> report = ReadResults(ReportPath(end.rank, run_directory, command), file_system);
  if (!report.ok()) return std::nullopt;
  const ConfigNode* pid = report->Find("pid");
  if (pid == nullptr || pid->AsInt().value_or(-1) != end.pid) return std::nullopt;
  return *std::move(report);
}

// Whether rank 0 was the last to lock the directory. The lock itself went with its process.
bool HadDirectory(const std::vector<RankEnd>& ends, const std::string& run_directory, FileSystem& file_system) {
  return std::any_of(ends.begin(), ends.end(), [&](const RankEnd& end) {
    return end.rank == 0 && HasLocked(end.pid, run_directory, file_system);
  });
}

// Of whom the report is: the first failure, or the lowest rank that a user's second signal has ended before it had
// saved; null when nothing has failed.
const RankEnd* ReportedEnd(const LaunchOutcome& outcome) {
  if (outcome.first_failure.has_value()) return &*outcome.first_failure;
  const RankEnd* lowest = nullptr;
  for (const RankEnd& end : outcome.ends) {
    const bool is_unsaved = outcome.user_stopped && end.signal != 0;
    if (is_unsaved && (lowest == nullptr || end.rank < lowest->rank)) lowest = &end;
  }
  return lowest;
}

// Whether the run's report is to stay. These ranks have only seen a connection break, or were stopped: where rank 0 is
// on another host, that host's launcher writes of it, and a rank of another host that is named already is the culprit.
bool IsAnotherHosts(const LaunchOutcome& outcome, const std::string& report_path, FileSystem& file_system) {
  const auto is_ours = [&](int64_t rank) {
    return std::any_of(outcome.ends.begin(), outcome.ends.end(), [&](const RankEnd& end) { return end.rank == rank; });
  };
  if (outcome.first_failure.has_value() && outcome.first_failure->code() != kExitPeer) return false;
  if (!is_ours(0)) return true;
  const absl::StatusOr<ConfigNode> report = ReadResults(report_path, file_system);
  const ConfigNode* rank = report.ok() ? report->Find("rank") : nullptr;
  return rank != nullptr && !is_ours(rank->AsInt().value_or(0));
}

void Copy(const ConfigNode& from, absl::string_view key, ConfigNode* to) {
  const ConfigNode* value = from.Find(key);
  if (value != nullptr) to->Set(key, *value);
}

// How it ended.
void AddEnd(const RankEnd& end, const ConfigNode& of_another, ConfigNode* report) {
  const auto set = [&end, report](const char* code, const std::string& message, int exit_code) {
    report->Set("code", ConfigNode::FromString(code));
    report->Set("message", ConfigNode::FromString(absl::StrCat(DescribeEnd(end), message)));
    report->Set("exit_code", ConfigNode::FromInt(exit_code));
  };
  if (end.did_hang) {
    const ConfigNode* said = of_another.Find("message");
    return set("DEADLINE_EXCEEDED", said == nullptr ? "" : absl::StrCat(": ", said->text()), kExitPeer);
  }
  set(end.signal != 0 ? "SIGNAL" : "UNKNOWN", ", and left no report", end.code());
  if (end.signal != 0) report->Set("signal", ConfigNode::FromInt(end.signal));
}

// Of a rank that has left none: how it ended, and where the others stood.
ConfigNode ReportOfEnd(const RankEnd& end, const ConfigNode& of_another, int64_t world_size) {
  const absl::Time now = absl::Now();
  ConfigNode report = ConfigNode::Map();
  AddEnd(end, of_another, &report);
  report.Set("time", ConfigNode::FromString(absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())));
  report.Set("unix_time", ConfigNode::FromInt(absl::ToUnixSeconds(now)));
  for (const char* key : {"phase", "step", "epoch", "last_checkpoint", "engine"}) Copy(of_another, key, &report);
  report.Set("rank", ConfigNode::FromInt(end.rank));
  report.Set("world_size", ConfigNode::FromInt(world_size));
  report.Set("pid", ConfigNode::FromInt(end.pid));
  report.Set("host", ConfigNode::FromString(HostName("unknown")));
  return report;
}

// The step of one training's newest checkpoint that verifies; 0 when there is none. Reads it whole.
int64_t NewestIntactStep(const std::string& directory, FileSystem& file_system) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const CheckpointStore store({CheckpointDirectory(directory), 0, ""}, file_system, *communicator);
  return store.FindNewestValid().value_or(0);
}

// The newest checkpoint's step of one training, intact or not; 0 when there is none.
int64_t NewestStep(const std::string& directory, FileSystem& file_system) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const CheckpointStore store({CheckpointDirectory(directory), 0, ""}, file_system, *communicator);
  const absl::StatusOr<std::vector<int64_t>> steps = store.Iterations();
  return steps.ok() && !steps->empty() ? steps->back() : 0;
}

// The folders of a run that hold a training, as the engines name them that make it.
std::vector<std::string> TrainingFolders(const std::string& run_directory, FileSystem& file_system) {
  const absl::StatusOr<std::vector<std::string>> names = file_system.List(run_directory);
  std::vector<std::string> folders;
  for (const std::string& name : names.ok() ? *names : folders) {
    const std::string checkpoints = CheckpointDirectory(absl::StrCat(run_directory, "/", name));
    if (file_system.IsDirectory(checkpoints)) folders.push_back(name);
  }
  return folders;
}

// That of the training that failed.
void AddNewestCheckpoint(const std::string& run_directory, const std::string& command, FileSystem& file_system,
                         ConfigNode* report) {
  // What a rank that a signal ended wrote of it is from before its last save, which a thread may have finished since.
  const ConfigNode* known = report->FindPath("last_checkpoint.step");
  if (known != nullptr && report->Find("signal") == nullptr) return;
  const ConfigNode* engine = report->Find("engine");
  const std::string folder = engine == nullptr ? command : engine->text();
  std::string directory = run_directory;
  for (const std::string& found : TrainingFolders(run_directory, file_system)) {
    if (found == folder) absl::StrAppend(&directory, "/", folder);
  }
  const int64_t step = NewestIntactStep(directory, file_system);
  if (step <= (known == nullptr ? 0 : known->AsInt().value_or(0))) return;
  const std::string path = absl::StrCat(CheckpointDirectory(directory), "/step_", step);
  report->SetPath("last_checkpoint.directory", ConfigNode::FromString(path));
  report->SetPath("last_checkpoint.step", ConfigNode::FromInt(step));
}

}  // namespace

SavedProgress SavedIn(const std::string& run_directory, FileSystem& file_system) {
  const int64_t own = NewestStep(run_directory, file_system);
  SavedProgress saved{own, own > 0 ? absl::StrCat("step ", own) : ""};
  for (const std::string& folder : TrainingFolders(run_directory, file_system)) {
    const int64_t step = NewestStep(absl::StrCat(run_directory, "/", folder), file_system);
    saved.steps += step;
    if (step == 0) continue;
    const std::string newest = absl::StrCat("step ", step, " in ", folder);
    saved.newest = saved.newest.empty() ? newest : absl::StrCat(saved.newest, ", ", newest);
  }
  return saved;
}

bool HasWaitedInVain(const RankEnd& end, int64_t pid, const std::string& run_directory, const std::string& command,
                     FileSystem& file_system) {
  const std::optional<ConfigNode> report = ReportOf(end, run_directory, command, file_system);
  const ConfigNode* silent = report.has_value() ? report->Find(kReportSilent) : nullptr;
  if (silent == nullptr) return false;
  ProcessIdentity process = ProcessIdentity::OfThisProcess();
  process.pid = pid;
  const std::vector<std::string> names = absl::StrSplit(silent->text(), ", ");
  return std::find(names.begin(), names.end(), process.Name()) != names.end();
}

bool HasLocked(int64_t pid, const std::string& run_directory, FileSystem& file_system) {
  const absl::StatusOr<std::string> holder = file_system.Read(absl::StrCat(run_directory, "/.lock"));
  return holder.ok() && absl::StartsWith(*holder, absl::StrCat("process ", pid, " "));
}

std::string LostDirectory(const LaunchOutcome& outcome, bool had_locked, const std::string& run_directory,
                          FileSystem& file_system) {
  const bool was_storage = outcome.first_failure.has_value() && outcome.first_failure->code() == kExitStorage;
  if (!(was_storage || had_locked) || HadDirectory(outcome.ends, run_directory, file_system)) return "";
  return absl::StrCat("run directory ", run_directory, " is not that of these ranks");
}

std::string NoRoom(const LaunchOutcome& outcome, const std::string& run_directory, const std::string& command,
                   FileSystem& file_system) {
  if (!outcome.first_failure.has_value() || outcome.first_failure->code() != kExitStorage) return "";
  const std::optional<ConfigNode> report = ReportOf(*outcome.first_failure, run_directory, command, file_system);
  const ConfigNode* number = report.has_value() ? report->Find("errno") : nullptr;
  const int64_t error = number == nullptr ? 0 : number->AsInt().value_or(0);
  struct statvfs disk = {};
  const bool is_full = statvfs(run_directory.c_str(), &disk) == 0 && disk.f_bavail == 0;
  if (error != ENOSPC && error != EDQUOT && error != EFBIG && !is_full) return "";
  return absl::StrCat("there is no room for what the run saves in ", run_directory, ": ",
                      std::strerror(error != 0 ? static_cast<int>(error) : ENOSPC));
}

void WriteLaunchFailure(const std::string& run_directory, const std::string& command, int64_t world_size,
                        const LaunchOutcome& outcome, FileSystem& file_system) {
  const RankEnd* failed = ReportedEnd(outcome);
  if (failed == nullptr || outcome.exit_code == kExitConfiguration) return;
  const std::string path = absl::StrCat(run_directory, "/", CommandFailureFile(command));
  if (IsAnotherHosts(outcome, path, file_system)) return;
  std::optional<ConfigNode> report = ReportOf(*failed, run_directory, command, file_system);
  std::optional<ConfigNode> of_another;
  for (const RankEnd& end : outcome.ends) {
    if (!of_another.has_value()) of_another = ReportOf(end, run_directory, command, file_system);
  }
  if (!of_another.has_value() && !HadDirectory(outcome.ends, run_directory, file_system)) return;
  if (!report.has_value()) report = ReportOfEnd(*failed, of_another.value_or(ConfigNode::Map()), world_size);
  AddNewestCheckpoint(run_directory, command, file_system, &*report);
  report->Set("restarts", ConfigNode::FromInt(outcome.restarts));
  ReportFile(path).Replace(ToJson(*report));
}

void RemoveLaunchFailure(const std::string& run_directory, const std::string& command, const LaunchOutcome& outcome,
                         FileSystem& file_system) {
  for (const RankEnd& end : outcome.ends) {
    if (!ReportOf(end, run_directory, command, file_system).has_value()) continue;
    file_system.RemoveAll(ReportPath(end.rank, run_directory, command)).IgnoreError();
  }
}

}  // namespace ssl
