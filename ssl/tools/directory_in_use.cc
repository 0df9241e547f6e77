// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/directory_in_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/check/named_components.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/writable_directory.h"

namespace ssl {
namespace {

constexpr char kSweepLock[] = ".sweep.lock";

// To lock it in earnest would write this process's name into it.
bool IsLocked(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return is_locked;
}

const std::string& DirectoryOf(const ConfigNode& root) { return root.FindPath("config.CHECKPOINT.DIR")->text(); }

absl::Status CheckNotLocked(const ConfigNode& root, absl::string_view name) {
  const std::string& directory = DirectoryOf(root);
  const std::string lock = absl::StrCat(directory, "/", name);
  if (!IsLocked(lock)) return absl::OkStatus();
  const absl::Status held = PosixFileSystem().Lock(lock).status();
  if (!absl::IsUnavailable(held)) return absl::OkStatus();
  return CannotBeUsed(directory, held);
}

}  // namespace

absl::Status CheckNotInUse(const ConfigNode& root) {
  if (!MeansToTrain(root)) return absl::OkStatus();
  return CheckNotLocked(root, ".lock");
}

absl::Status CheckSweepNotInUse(const ConfigNode& first) {
  return Trains(first) ? CheckNotLocked(first, kSweepLock) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> LockSweep(const ConfigNode& first) {
  if (!Trains(first)) return std::unique_ptr<FileLock>();
  const std::string& directory = DirectoryOf(first);
  const absl::Status made = PosixFileSystem().CreateDirectories(directory);
  if (!made.ok()) return CannotBeUsed(directory, made);
  absl::StatusOr<std::unique_ptr<FileLock>> lock = PosixFileSystem().Lock(absl::StrCat(directory, "/", kSweepLock));
  if (!lock.ok()) return CannotBeUsed(directory, lock.status());
  return lock;
}

absl::Status UnlessInUse(const absl::Status& refusal, const ConfigNode& root) {
  if (ExitCodeOf(refusal) != kExitConfiguration) return refusal;
  const absl::Status in_use = CheckNotInUse(root);
  return in_use.ok() ? refusal : in_use;
}

}  // namespace ssl
