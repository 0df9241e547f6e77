// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/writable_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"
#include "ssl/check/named_components.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"

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

absl::Status CheckPath(const std::string& path) {
  const std::string nearest = NearestThatExists(path);
  // Makes nothing, because something is there: it says what is in the way.
  if (!PosixFileSystem().IsDirectory(nearest)) return PosixFileSystem().CreateDirectories(nearest);
  if (faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "writing into the directory", nearest);
}

}  // namespace

absl::Status CheckCanBeWritten(const ConfigNode& root) {
  const std::string path = root.FindPath(kDirectory)->text();
  const absl::Status status = CheckPath(path);
  if (status.ok() || (absl::IsPermissionDenied(status) && !Trains(root))) return absl::OkStatus();
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
