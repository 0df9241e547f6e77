// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/atomic_file.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

absl::Status WriteAndRename(FileSystem& file_system, const std::string& temporary, const std::string& path,
                            absl::string_view contents) {
  SSL_RETURN_IF_ERROR(WriteFileDurably(file_system, temporary, contents));
  return file_system.Rename(temporary, path);
}

}  // namespace

absl::Status WriteFileDurably(FileSystem& file_system, const std::string& path, absl::string_view contents) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.Create(path));
  SSL_RETURN_IF_ERROR(file->Append(contents));
  SSL_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status WriteFileAtomically(FileSystem& file_system, const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  const absl::Status written = WriteAndRename(file_system, temporary, path, contents);
  if (!written.ok()) {
    // The first error is the one to report; a temporary file that stays harms nobody.
    if (file_system.Exists(temporary)) file_system.RemoveFile(temporary).IgnoreError();
    return written;
  }
  return file_system.SyncDirectory(ParentDirectory(path));
}

}  // namespace ssl
