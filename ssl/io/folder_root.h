// SPDX-License-Identifier: Apache-2.0
//
// Files and folders below one folder, and no others: a path is followed by the kernel (openat2 with RESOLVE_BENEATH),
// which refuses a link or ".." that leads out at the moment of opening, so that nothing can be exchanged between a
// check and the use. Linux 5.6 or later. Const use is thread-safe.
//
//   SSL_ASSIGN_OR_RETURN(const std::unique_ptr<FolderRoot> root, FolderRoot::Open("/data/images"));
//   root->OpenRead("/data/images/cat/1.jpg");
#ifndef SSL_IO_FOLDER_ROOT_H_
#define SSL_IO_FOLDER_ROOT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

  // The same for what lies directly in a folder, as FileSystem::ListEntries; the folder itself may be listed.
  absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& directory) const;

  // What a path leads to, whatever links are on the way; errors as above.
  struct Place {
    bool is_directory = false;
    std::string identity;  // as FileSystem::Identity
  };
  absl::StatusOr<Place> LookUp(const std::string& path) const;

 private:
  FolderRoot(std::string prefix, int fd);
  // A descriptor of what `path` leads to; -1 never.
  absl::StatusOr<int> OpenBelow(const std::string& path, int flags, absl::string_view operation) const;

  const std::string prefix_;  // "/data/images/"
  const int fd_;
};

}  // namespace ssl

#endif  // SSL_IO_FOLDER_ROOT_H_
