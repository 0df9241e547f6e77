// SPDX-License-Identifier: Apache-2.0
//
// Files below one folder, and no others: a path is followed by the kernel (openat2 with RESOLVE_BENEATH), which refuses
// a link or ".." that leads out at the moment of opening, so that nothing can be exchanged between a check and the use.
// Linux 5.6 or later. Const use is thread-safe.
//
//   SSL_ASSIGN_OR_RETURN(const std::unique_ptr<FolderRoot> root, FolderRoot::Open("/data/images"));
//   root->OpenRead("/data/images/cat/1.jpg");
#ifndef SSL_IO_FOLDER_ROOT_H_
#define SSL_IO_FOLDER_ROOT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"

namespace ssl {

class FolderRoot {
 public:
  // Unimplemented when the kernel cannot do it, or a sandbox forbids it; otherwise errors of opening the folder.
  static absl::StatusOr<std::unique_ptr<FolderRoot>> Open(const std::string& folder);
  ~FolderRoot();
  FolderRoot(const FolderRoot&) = delete;
  FolderRoot& operator=(const FolderRoot&) = delete;

  // path: begins with the folder, as it was opened. PermissionDenied: it does not, or leads out of the folder;
  // InvalidArgument: not a regular file. Does not wait, whatever the path leads to.
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) const;

 private:
  FolderRoot(std::string prefix, int fd);

  const std::string prefix_;  // "/data/images/"
  const int fd_;
};

}  // namespace ssl

#endif  // SSL_IO_FOLDER_ROOT_H_
