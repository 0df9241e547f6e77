// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_directory.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<FileLock>> MakeAndLock(const std::string& path, FileSystem& file_system) {
  SSL_RETURN_IF_ERROR(file_system.CreateDirectories(path));
  return file_system.Lock(absl::StrCat(path, "/.lock"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(const std::string& path, FileSystem& file_system,
                                                                 Communicator& communicator) {
  auto directory = std::unique_ptr<RunDirectory>(new RunDirectory(path));
  absl::Status status;
  if (communicator.rank() == 0) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock = MakeAndLock(path, file_system);
    status = lock.status();
    if (lock.ok()) directory->lock_ = *std::move(lock);
  }
  SSL_RETURN_IF_ERROR(AgreeOnStatus(status, "opening the run directory", communicator));
  return directory;
}

absl::Status RunDirectory::CheckInUse() const {
  const absl::Status held = lock_ != nullptr ? lock_->CheckHeld() : absl::OkStatus();
  if (!absl::IsFailedPrecondition(held)) return held;
  return absl::FailedPreconditionError(absl::StrCat("run directory ", path_,
                                                    " was removed or replaced while this run used it (", held.message(),
                                                    "); this run ends, and writes nothing into what lies there now"));
}

}  // namespace ssl
