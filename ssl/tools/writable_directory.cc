// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/writable_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"
#include "ssl/check/named_components.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/failure_report.h"

namespace ssl {
namespace {

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";

// `path`, or the nearest above it that exists: where a start begins to make directories.
std::string NearestThatExists(std::string path) {
  while (access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    std::string parent = ParentDirectory(path);
    if (parent == path) break;
    path = std::move(parent);
  }
  return path;
}

bool IsDanglingLink(const std::string& path) {
  struct stat of_link = {};
  return lstat(path.c_str(), &of_link) == 0 && access(path.c_str(), F_OK) != 0 && errno == ENOENT;
}

// What a training opens in its directory.
absl::Status CheckFiles(const std::string& path) {
  FileSystem& files = PosixFileSystem();
  for (const std::string& name : {std::string(".lock"), CommandConfigFile(kTrainCommand)}) {
    const std::string file = absl::StrCat(path, "/", name);
    if (files.IsDirectory(file)) return absl::FailedPreconditionError(absl::StrCat(file, " is a directory"));
  }
  const std::string logs = absl::StrCat(path, "/", kRankFolder);
  if (!files.Exists(logs) || files.IsDirectory(logs)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(logs, " is a file, and a directory is needed there"));
}

absl::Status CheckPath(const std::string& path) {
  // Makes nothing: a link is in the way.
  if (IsDanglingLink(path)) return PosixFileSystem().CreateDirectories(path);
  const std::string nearest = NearestThatExists(path);
  // Makes nothing, because something is there: it says what is in the way.
  if (!PosixFileSystem().IsDirectory(nearest)) return PosixFileSystem().CreateDirectories(nearest);
  if (faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "writing into the directory", nearest);
}

}  // namespace

absl::Status CheckCanBeWritten(const ConfigNode& root) {
  const std::string path = root.FindPath(kDirectory)->text();
  absl::Status status = CheckPath(path);
  if (Trains(root)) status.Update(CheckFiles(path));
  const std::vector<std::string> engines = EngineNames(root);
  const bool writes = Trains(root) || std::any_of(engines.begin(), engines.end(), IsForFiles);
  if (status.ok() || (absl::IsPermissionDenied(status) && !writes)) return absl::OkStatus();
  return CannotBeUsed(path, status);
}

absl::Status CannotBeUsed(const std::string& path, const absl::Status& status) {
  const bool keeps_code =
      absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
  absl::Status result(keeps_code ? status.code() : absl::StatusCode::kFailedPrecondition,
                      absl::StrCat("run directory ", path, " cannot be used: ", status.message(), "; ", kDirectory,
                                   " chooses another"));
  const std::string error_number = DetailOf(status, kDetailErrno);
  return error_number.empty() ? result : WithDetail(std::move(result), kDetailErrno, error_number);
}

}  // namespace ssl
