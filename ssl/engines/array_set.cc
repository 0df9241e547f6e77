// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/array_set.h"

#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

absl::Status RemoveEarlier(const std::string& directory, const std::vector<std::string>& names,
                           FileSystem& file_system) {
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (file_system.Exists(path)) SSL_RETURN_IF_ERROR(file_system.RemoveFile(path));
  }
  // Else a power loss could bring one of them back beside the new ones.
  return file_system.SyncDirectory(directory);
}

absl::StatusOr<std::vector<WrittenArray>> WriteAndReplace(const std::string& directory, const std::string& staging,
                                                          const std::vector<NamedArray>& arrays,
                                                          const std::vector<std::string>& earlier,
                                                          FileSystem& file_system) {
  SSL_RETURN_IF_ERROR(file_system.RemoveAll(staging));
  SSL_RETURN_IF_ERROR(file_system.CreateDirectories(staging));
  std::vector<WrittenArray> written;
  for (const NamedArray& array : arrays) {
    SSL_ASSIGN_OR_RETURN(written.emplace_back(), WriteArray(staging, array.file, array.values, file_system));
  }
  SSL_RETURN_IF_ERROR(RemoveEarlier(directory, earlier, file_system));
  for (const NamedArray& array : arrays) {
    SSL_RETURN_IF_ERROR(
        file_system.Rename(absl::StrCat(staging, "/", array.file), absl::StrCat(directory, "/", array.file)));
  }
  SSL_RETURN_IF_ERROR(file_system.SyncDirectory(directory));
  return written;
}

}  // namespace

absl::StatusOr<std::vector<WrittenArray>> ReplaceArrays(const std::string& directory,
                                                        const std::vector<NamedArray>& arrays,
                                                        std::vector<std::string> earlier, FileSystem& file_system) {
  if (arrays.empty()) return std::vector<WrittenArray>();
  const std::string staging = absl::StrCat(directory, "/", arrays.front().file, ".tmp-", getpid());
  for (const NamedArray& array : arrays) earlier.push_back(array.file);
  absl::StatusOr<std::vector<WrittenArray>> written = WriteAndReplace(directory, staging, arrays, earlier, file_system);
  // What stays is no array, and RemoveUnfinishedFiles removes it.
  file_system.RemoveAll(staging).IgnoreError();
  return written;
}

}  // namespace ssl
