// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/atomic_file.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/leftovers.h"
#include "ssl/tools/shared_directory.h"
#include "ssl/tools/writable_directory.h"

namespace ssl {
namespace {

constexpr char kConfigHeader[] = "# @package _global_\n";
constexpr char kLog[] = "log.txt";
constexpr char kResults[] = "results.json";

// `file` with what differs between `earlier` and `now`: set, or taken away. What another command has written since then
// stays.
ConfigNode WithChanges(const ConfigNode& file, const ConfigNode& earlier, const ConfigNode& now) {
  ConfigNode merged = ConfigNode::Map();
  for (const auto& [key, value] : file.entries()) {
    if (earlier.Find(key) == nullptr || now.Find(key) != nullptr) merged.Set(key, value);
  }
  for (const auto& [key, value] : now.entries()) {
    const ConfigNode* before = earlier.Find(key);
    if (before != nullptr && *before == value) continue;
    const ConfigNode* there = merged.Find(key);
    const bool are_maps = there != nullptr && there->is_map() && value.is_map();
    merged.Set(key, are_maps ? WithChanges(*there, before != nullptr ? *before : ConfigNode::Map(), value) : value);
  }
  return merged;
}

void SetIfThere(absl::string_view path, ConfigNode value, ConfigNode* root) {
  if (root->FindPath(path) != nullptr) root->SetPath(path, std::move(value));
}

// `root` for a file that users run again. What a start does once to what lies there is done: the file must neither
// remove this very run, nor go back to a step that is gone. An evaluation of a step is repeated with that step.
std::string RepeatableConfig(ConfigNode root, bool trains) {
  SetIfThere("config.CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(false), &root);
  if (trains) SetIfThere("config.CHECKPOINT.RESUME_FROM", ConfigNode::FromInt(-1), &root);
  return absl::StrCat(kConfigHeader, WriteYaml(root));
}

// file: "" for none.
void OpenLog(const std::string& file, bool to_stderr) {
  LogOptions log;
  log.file = file;
  log.to_stderr = to_stderr;
  InitLogging(log);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRecord>> RunRecord::Open(const std::string& path,
                                                           const std::vector<std::string>& engines, bool trains,
                                                           const ConfigNode& root,
                                                           absl::FunctionRef<absl::Status()> admit,
                                                           FileSystem& file_system, Communicator& communicator) {
  const std::string name = trains ? kTrainCommand : absl::StrJoin(engines, "_");
  auto record =
      std::unique_ptr<RunRecord>(new RunRecord(path, name, RepeatableConfig(root, trains), file_system, communicator));
  record->is_for_files_ = std::any_of(engines.begin(), engines.end(), IsForFiles);
  SSL_RETURN_IF_ERROR(trains ? record->OpenForTraining(admit) : record->OpenForEvaluation());
  SSL_RETURN_IF_ERROR(AgreeOnStatus(record->is_first_rank() ? record->LoadResults() : absl::OkStatus(),
                                    "reading results", communicator));
  return record;
}

absl::Status RunRecord::OpenForTraining(absl::FunctionRef<absl::Status()> admit) {
  absl::StatusOr<std::unique_ptr<RunDirectory>> held = RunDirectory::Open(path_, file_system_, communicator_);
  if (!held.ok()) return CannotBeUsed(held.status());
  held_ = *std::move(held);
  SSL_RETURN_IF_ERROR(CheckSharedDirectory(path_, file_system_, communicator_));
  SSL_RETURN_IF_ERROR(admit());
  const absl::Status opened = OpenOwnFiles();
  return AgreeOnStatus(opened.ok() ? opened : CannotBeUsed(opened), "opening the run directory", communicator_);
}

absl::Status RunRecord::OpenForEvaluation() {
  absl::Status status = file_system_.CreateDirectories(path_);
  checkpoints_ = std::make_unique<const WatchedDirectory>(CheckpointDirectory(path_));
  if (status.ok()) status = BeginEvaluation();
  if (status.ok()) status = OpenOwnFiles();
  if (absl::IsPermissionDenied(status) && !is_for_files_) {
    KeepNothing("cannot be written", status);
    status = absl::OkStatus();
  }
  return AgreeOnStatus(status.ok() ? status : CannotBeUsed(status), "opening the run directory", communicator_);
}

// The log, and the place of a report of a failure.
absl::Status RunRecord::OpenOwnFiles() {
  if (!is_first_rank()) {
    SSL_RETURN_IF_ERROR(CheckNoLink(File(kRankFolder)));
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(File(kRankFolder)));
  }
  OpenLog(LogFile(), is_first_rank());
  failure_ = ReportFile(FailureFile());
  return absl::OkStatus();
}

void RunRecord::KeepNothing(const char* problem, const absl::Status& status) {
  SSL_LOG(WARNING) << "run directory " << path_ << " " << problem << " (" << status.message()
                   << "): results are printed and not kept";
  is_writable_ = false;
  failure_ = ReportFile();
  OpenLog("", is_first_rank());  // no longer to the file of a run before
}

// Results that an evaluation may not read are somebody else's: it would replace them by its own alone.
absl::Status RunRecord::LoadResults() {
  absl::StatusOr<ConfigNode> results = ReadOrSetAsideResults();
  if (absl::IsPermissionDenied(results.status()) && held_ == nullptr) {
    if (is_writable_) KeepNothing("has results that cannot be read", results.status());
    results = ConfigNode::Map();
  }
  SSL_RETURN_IF_ERROR(results.status());
  results_ = *std::move(results);
  saved_results_ = results_;
  return absl::OkStatus();
}

absl::Status RunRecord::Begin() {
  absl::Status status = is_first_rank() ? WriteConfig() : absl::OkStatus();
  if (status.ok()) status = RemoveEarlierFailure();
  has_begun_ = status.ok();
  if (has_begun_ && is_first_rank()) RemoveLeftovers(path_, communicator_.size(), file_system_);
  return AgreeOnStatus(status.ok() ? status : CannotBeUsed(status), "beginning the run's files", communicator_);
}

// Its files come hours later: whether they can is known now.
absl::Status RunRecord::BeginEvaluation() {
  const std::string probe = absl::StrCat(File(CommandConfigFile(name_)), ".probe-", getpid());
  if (is_first_rank()) {
    SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system_, probe, config_));
    SSL_RETURN_IF_ERROR(file_system_.RemoveFile(probe));
  }
  SSL_RETURN_IF_ERROR(RemoveEarlierFailure());
  has_begun_ = true;
  return absl::OkStatus();
}

absl::Status RunRecord::WriteConfig() {
  return WriteFileAtomically(file_system_, File(CommandConfigFile(name_)), config_);
}

absl::Status RunRecord::RemoveEarlierFailure() {
  const std::string failure = FailureFile();
  return file_system_.Exists(failure) ? file_system_.RemoveFile(failure) : absl::OkStatus();
}

std::string RunRecord::LogFile() const {
  return File(is_first_rank() ? kLog : absl::StrCat(kRankFolder, "/rank", communicator_.rank(), ".txt"));
}

std::string RunRecord::FailureFile() const {
  const std::string name = CommandFailureFile(name_);
  return File(is_first_rank() ? name : absl::StrCat(kRankFolder, "/rank", communicator_.rank(), "_", name));
}

void RunRecord::AddToLog(const std::vector<std::string>& warnings) const {
  if (warnings.empty() || !is_writable_) return;
  OpenLog(LogFile(), false);
  for (const std::string& warning : warnings) SSL_LOG(WARNING) << warning;
  OpenLog(LogFile(), is_first_rank());
}

absl::Status RunRecord::CannotBeUsed(const absl::Status& status) const {
  // Of another rank: that one says what is wrong.
  if (absl::IsAborted(status) || DetailOf(status, kDetailCause) == kCausePeer) return status;
  return ssl::CannotBeUsed(path_, status);
}

// A file that a crash of the machine or a full disk has left is no reason to refuse hours of work.
absl::StatusOr<ConfigNode> RunRecord::ReadOrSetAsideResults() const {
  const std::string path = File(kResults);
  absl::StatusOr<ConfigNode> results = ReadResults(path, file_system_);
  if (!absl::IsInvalidArgument(results.status())) return results;
  const std::string aside = absl::StrCat(path, ".damaged");
  if (is_writable_) SSL_RETURN_IF_ERROR(file_system_.Rename(path, aside));
  SSL_LOG(WARNING) << results.status().message() << (is_writable_ ? absl::StrCat("; it is ", aside, " now") : "")
                   << ", and the results begin anew";
  return ConfigNode::Map();
}

absl::Status RunRecord::SaveResults() {
  if (!is_writable_ || !is_first_rank()) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(CheckSameRun());
  SSL_ASSIGN_OR_RETURN(const ConfigNode file, ReadOrSetAsideResults());
  SSL_RETURN_IF_ERROR(WriteResults(File(kResults), WithChanges(file, saved_results_, results_), file_system_));
  saved_results_ = results_;
  // A configuration that failed would stand beside the results of another one.
  return held_ == nullptr ? WriteConfig() : absl::OkStatus();
}

// A run that starts anew in its place removes the folder of its checkpoints and makes another one; a run that goes on
// only changes what is in it.
absl::Status RunRecord::CheckSameRun() const {
  if (held_ != nullptr) return held_->CheckInUse();
  if (!checkpoints_->IsReplaced()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      checkpoints_->path(), " was removed or replaced while ", name_, " evaluated what it held: ",
      "the results are of a run that is gone, and ", File(kResults), " keeps none of them; evaluate again"));
}

void RunRecord::WriteFailure(const absl::Status& error, const FailureSource& source, const RunProgress& progress) {
  if (held_ != nullptr && !held_->CheckInUse().ok()) return;
  if (IsRefusal(error)) return;
  failure_.Replace(FailureReport(error, source, progress));
}

bool RunRecord::IsRefusal(const absl::Status& error) const {
  return !has_begun_ && ExitCodeOf(error) == kExitConfiguration && file_system_.Exists(File(CommandConfigFile(name_)));
}

std::string RunRecord::File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

}  // namespace ssl
