// SPDX-License-Identifier: Apache-2.0
//
// What lies directly in a directory. Private to ssl/io: the rest of the program goes through FileSystem and FolderRoot.
// Stateless.
#ifndef SSL_IO_POSIX_DIRECTORY_H_
#define SSL_IO_POSIX_DIRECTORY_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/io/posix_fd.h"

namespace ssl {

struct PosixEntry {
  std::string name;
  mode_t type = 0;  // S_IFDIR, S_IFLNK, ...; 0: nobody tells
};

// In byte order of the names, without "." and "..". directory: open to read; path: its path, for messages.
absl::StatusOr<std::vector<PosixEntry>> ReadDirectory(UniqueFd directory, const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_POSIX_DIRECTORY_H_
