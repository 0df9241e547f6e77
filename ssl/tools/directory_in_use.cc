// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/directory_in_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/check/named_components.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/writable_directory.h"

namespace ssl {
namespace {

// To lock it in earnest would write this process's name into it.
bool IsLocked(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return is_locked;
}

}  // namespace

absl::Status CheckNotInUse(const ConfigNode& root) {
  if (!Trains(root)) return absl::OkStatus();
  const std::string directory = root.FindPath("config.CHECKPOINT.DIR")->text();
  const std::string lock = absl::StrCat(directory, "/.lock");
  if (!IsLocked(lock)) return absl::OkStatus();
  const absl::Status held = PosixFileSystem().Lock(lock).status();
  if (!absl::IsUnavailable(held)) return absl::OkStatus();
  return CannotBeUsed(directory, held);
}

absl::Status UnlessInUse(const absl::Status& refusal, const ConfigNode& root) {
  if (ExitCodeOf(refusal) != kExitConfiguration) return refusal;
  const absl::Status in_use = CheckNotInUse(root);
  return in_use.ok() ? refusal : in_use;
}

}  // namespace ssl
