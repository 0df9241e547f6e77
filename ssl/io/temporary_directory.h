// SPDX-License-Identifier: Apache-2.0
//
// A directory of the machine's file system for what a library insists on writing by itself, whatever FileSystem the
// program uses. Nobody else can have planted anything there: it is new, and its mode is 0700. A process that is killed
// leaves it behind.
//
//   SSL_ASSIGN_OR_RETURN(const auto directory, TemporaryDirectory::Make("trace"));
//   library.Save(directory->path() + "/trace.json");
#ifndef SSL_IO_TEMPORARY_DIRECTORY_H_
#define SSL_IO_TEMPORARY_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

class TemporaryDirectory {
 public:
  // Makes it in $TMPDIR, or /tmp; `what`, without '/', is a part of its name. Errors name the path.
  static absl::StatusOr<std::unique_ptr<TemporaryDirectory>> Make(absl::string_view what);

  // Removes it with everything in it.
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace ssl

#endif  // SSL_IO_TEMPORARY_DIRECTORY_H_
