// SPDX-License-Identifier: Apache-2.0
//
// What tells whether a file is still the one that it was, without reading it.
#ifndef SSL_IO_FILE_STAMP_H_
#define SSL_IO_FILE_STAMP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ssl {

// Equal for a file that nobody has written or replaced in between; a change that keeps the size and sets the old time
// back goes unnoticed.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_ns = 0;  // since 1970

  bool operator==(const FileStamp& other) const {
    return device == other.device && inode == other.inode && size == other.size && modified_ns == other.modified_ns;
  }
};

// Of what the path leads to, by one call of the system (stat). Errors are those of opening it.
absl::StatusOr<FileStamp> ReadFileStamp(const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_FILE_STAMP_H_
