// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/file_stamp.h"

#include <sys/stat.h>

#include <cerrno>

#include "ssl/io/errno_status.h"

namespace ssl {

absl::StatusOr<FileStamp> ReadFileStamp(const std::string& path) {
  constexpr int64_t kNanoseconds = 1000000000;
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return ErrnoStatus(errno, "opening", path);
  return FileStamp{status.st_dev, status.st_ino, status.st_size,
                   status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
}

}  // namespace ssl
