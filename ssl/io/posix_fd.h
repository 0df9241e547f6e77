// SPDX-License-Identifier: Apache-2.0
//
// File descriptors with the retries that POSIX asks for. Private to ssl/io: the rest of the
// program goes through FileSystem. A UniqueFd owns its descriptor; the functions are
// thread-safe and name `path` in their errors.
//
//   SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenFd(path, O_RDONLY, "opening"));

#ifndef SSL_IO_POSIX_FD_H_
#define SSL_IO_POSIX_FD_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ssl {

// A file descriptor that closes itself; -1 means none.
class UniqueFd {
 public:
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// open(2) with O_CLOEXEC; new files get mode 0666 less the umask. A path with a NUL byte is InvalidArgument: the system
// would open another file, whose name ends there.
absl::StatusOr<UniqueFd> OpenFd(const std::string& path, int flags, absl::string_view operation);

// The same for a file to write. A link at `path` is FailedPrecondition: following one that another user or an unpacked
// archive put there would write into a file of its choice. So is a pipe, at once: opening it would wait.
absl::StatusOr<UniqueFd> OpenOutputFd(const std::string& path, int flags, absl::string_view operation);

// Size of an open file; InvalidArgument unless it is a regular file.
absl::StatusOr<int64_t> RegularFileSize(int fd, const std::string& path);

// Up to into.size() bytes from `offset`, fewer only at the end of the file.
absl::StatusOr<int64_t> ReadUpTo(int fd, int64_t offset, absl::Span<char> into, const std::string& path);

// Exactly into.size() bytes from `offset`; DataLoss when the file ends before.
absl::Status ReadExactly(int fd, int64_t offset, absl::Span<char> into, const std::string& path);

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path);
absl::Status SyncFd(int fd, const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_POSIX_FD_H_
