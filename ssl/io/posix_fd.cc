// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/posix_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/errno_status.h"

namespace ssl {
UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<UniqueFd> OpenFd(const std::string& path, int flags, absl::string_view operation) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", absl::CHexEscape(path), "': ", operation, " failed: its name has a NUL byte"));
  }
  constexpr mode_t kMode = 0666;
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, kMode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return ErrnoStatus(errno, operation, path);
  return UniqueFd(fd);
}

absl::StatusOr<UniqueFd> OpenOutputFd(const std::string& path, int flags, absl::string_view operation) {
  struct stat info;
  absl::StatusOr<UniqueFd> fd = OpenFd(path, flags | O_NOFOLLOW | O_NONBLOCK, operation);
  if (fd.ok() && (fstat(fd->get(), &info) != 0 || !S_ISFIFO(info.st_mode))) return fd;
  if (lstat(path.c_str(), &info) != 0) return fd;
  if (S_ISLNK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "file ", path, ": ", operation, " failed: it is a symbolic link, and output follows none; remove the link"));
  }
  if (S_ISFIFO(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("file ", path, ": ", operation,
                     " failed: a pipe is in the way, and a regular file is needed there; move it away"));
  }
  return fd;
}

absl::StatusOr<int64_t> RegularFileSize(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "reading the size", path);
  if (S_ISREG(info.st_mode)) return static_cast<int64_t>(info.st_size);
  const absl::string_view found = S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe";
  return absl::InvalidArgumentError(absl::StrCat("file ", path, ": is ", found, ", expected a regular file"));
}

absl::StatusOr<int64_t> ReadUpTo(int fd, int64_t offset, absl::Span<char> into, const std::string& path) {
  size_t got = 0;
  while (got < into.size()) {
    const ssize_t count = pread(fd, into.data() + got, into.size() - got, offset + got);
    if (count == 0) break;
    if (count > 0) {
      got += count;
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "reading", path);
    }
  }
  return static_cast<int64_t>(got);
}

absl::Status ReadExactly(int fd, int64_t offset, absl::Span<char> into, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const int64_t got, ReadUpTo(fd, offset, into, path));
  if (got == static_cast<int64_t>(into.size())) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("file ", path, ": ends after ", offset + got, " bytes, expected at least ",
                                          offset + static_cast<int64_t>(into.size())));
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(count);
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "writing", path);
    }
  }
  return absl::OkStatus();
}

absl::Status SyncFd(int fd, const std::string& path) {
  int result = 0;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return ErrnoStatus(errno, "syncing", path);
  return absl::OkStatus();
}

}  // namespace ssl
