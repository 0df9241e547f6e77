// SPDX-License-Identifier: Apache-2.0
//
// What one command keeps in the directory of a run beside its engines' own files: the lock, the configuration, the log,
// the results, and the report of a failure.
//
// A command that trains has the directory for itself: it takes the lock before it writes anything, so a second one
// changes nothing. Its files are train_config.yaml and failure.json, which are the earlier run's until the training
// begins: a start that is refused changes the log only. Evaluations read the directory, also while a
// training uses it; their files have their own names, knn_config.yaml, which comes with the results, and
// knn_failure.json, and where they may not write, or not read the results that are there, their own are printed only.
//
// Of several ranks, rank 0 writes all of that. Each other one has in the folder logs its own log, rank<r>.txt, and the
// report of its own failure, rank<r>_failure.json.
#ifndef SSL_TOOLS_RUN_RECORD_H_
#define SSL_TOOLS_RUN_RECORD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/run_directory.h"
#include "ssl/core/run_progress.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/failure_report.h"
#include "ssl/tools/report_file.h"
#include "ssl/tools/watched_directory.h"

namespace ssl {

// One thread uses it. References outlive it.
class RunRecord {
 public:
  // Opens `path` for `engines`, the names of what the command runs: makes it, locks it when one of them trains and asks
  // `admit`, whose error it returns having changed nothing; then sends the log there. `root` is kept for Begin, or of
  // an evaluation for SaveResults. Whatever is wrong, it is the place and not the configuration: Unavailable, naming
  // process and host, when another training has it; PermissionDenied, ResourceExhausted, or else FailedPrecondition;
  // Aborted when it is wrong on another rank. `admit` is asked by all ranks, and agrees. Collective.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Open(const std::string& path,
                                                         const std::vector<std::string>& engines, bool trains,
                                                         const ConfigNode& root,
                                                         absl::FunctionRef<absl::Status()> admit,
                                                         FileSystem& file_system, Communicator& communicator);

  // Writes the configuration, so that it can be run again, and removes the failure report of the command before: for a
  // training that nothing refuses any more. Errors as of Open. Collective.
  absl::Status Begin();

  // Into the log of the run only: what was on stderr before that log was open.
  void AddToLog(const std::vector<std::string>& warnings) const;

  // False of an evaluation that may not write there, which is in the log.
  bool is_writable() const { return is_writable_; }
  // Null when nothing trains.
  const RunDirectory* held() const { return held_.get(); }

  // What results.json holds and will hold; engines set their keys. A damaged file is set aside, results.json.damaged.
  // Rank 0 reads it; the others begin with nothing.
  ConfigNode& results() { return results_; }
  // Of an evaluation, together with its configuration. Writes what was set or taken away since the file was read, and
  // keeps what another command has written meanwhile. FailedPrecondition, having written nothing, when another run lies
  // in the directory by now, or in that of the checkpoints: an evaluation holds no lock, and its figures are of the run
  // that was there. Nothing on other ranks than 0.
  absl::Status SaveResults();

  // Best effort: the error itself is what matters. Writes nothing into a directory that is no longer this run's, nor
  // where a mistake (exit code 2) has ended a start before it began, and a run lies there: it is not that run's
  // failure.
  void WriteFailure(const absl::Status& error, const FailureSource& source, const RunProgress& progress);
  // The report's file, for a CrashReportScope; of no place where nothing may be written.
  const ReportFile& failure_file() const { return failure_; }

 private:
  RunRecord(std::string path, std::string name, std::string config, FileSystem& file_system, Communicator& communicator)
      : path_(std::move(path)),
        name_(std::move(name)),
        config_(std::move(config)),
        file_system_(file_system),
        communicator_(communicator) {}

  absl::Status OpenForTraining(absl::FunctionRef<absl::Status()> admit);
  absl::Status OpenForEvaluation();
  absl::Status OpenOwnFiles();
  absl::Status BeginEvaluation();
  absl::Status WriteConfig();
  absl::Status RemoveEarlierFailure();
  void KeepNothing(const char* problem, const absl::Status& status);
  absl::Status LoadResults();
  absl::Status CheckSameRun() const;
  bool is_first_rank() const { return communicator_.rank() == 0; }
  std::string LogFile() const;
  std::string FailureFile() const;
  bool IsRefusal(const absl::Status& error) const;
  std::string File(const std::string& name) const;
  absl::StatusOr<ConfigNode> ReadOrSetAsideResults() const;
  absl::Status CannotBeUsed(const absl::Status& status) const;

  const std::string path_;
  const std::string name_;    // of the command: "train", "knn", "knn_linear_eval"
  const std::string config_;  // as it is written
  FileSystem& file_system_;
  Communicator& communicator_;
  std::unique_ptr<RunDirectory> held_;
  std::unique_ptr<const WatchedDirectory> checkpoints_;  // null when held
  ConfigNode results_ = ConfigNode::Map();
  ConfigNode saved_results_ = ConfigNode::Map();  // as they were read, or written last
  bool is_for_files_ = false;                     // and of no use without
  bool is_writable_ = true;
  bool has_begun_ = false;
  ReportFile failure_;
};

}  // namespace ssl

#endif  // SSL_TOOLS_RUN_RECORD_H_
