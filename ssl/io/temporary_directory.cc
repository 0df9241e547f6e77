// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/temporary_directory.h"

#include <stdlib.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::Make(absl::string_view what) {
  const char* place = getenv("TMPDIR");
  const bool is_set = place != nullptr && *place != '\0';
  std::string path = absl::StrCat(is_set ? place : "/tmp", "/ssl_", what, "_XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "making the temporary directory", path);
  return std::unique_ptr<TemporaryDirectory>(new TemporaryDirectory(std::move(path)));
}

// What stays is in nobody's way, and the system empties the place.
TemporaryDirectory::~TemporaryDirectory() { PosixFileSystem().RemoveAll(path_).IgnoreError(); }

}  // namespace ssl
