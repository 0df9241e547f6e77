// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/array_set.h"

#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

absl::StatusOr<std::vector<WrittenArray>> WriteInto(const std::string& staging, const std::vector<NamedArray>& arrays,
                                                    FileSystem& file_system) {
  std::vector<WrittenArray> written;
  if (arrays.empty()) return written;
  SSL_RETURN_IF_ERROR(file_system.RemoveAll(staging));
  SSL_RETURN_IF_ERROR(file_system.CreateDirectories(staging));
  for (const NamedArray& array : arrays) {
    SSL_ASSIGN_OR_RETURN(written.emplace_back(), WriteArray(staging, array.file, array.values, file_system));
  }
  return written;
}

absl::Status RemoveEarlier(const std::string& directory, const std::vector<std::string>& names,
                           FileSystem& file_system) {
  if (names.empty()) return absl::OkStatus();
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (file_system.Exists(path)) SSL_RETURN_IF_ERROR(file_system.RemoveFile(path));
  }
  // Else a power loss could bring one of them back beside the new ones.
  return file_system.SyncDirectory(directory);
}

absl::Status PutInPlace(const std::string& directory, const std::string& staging, const std::vector<NamedArray>& arrays,
                        FileSystem& file_system) {
  if (arrays.empty()) return absl::OkStatus();
  for (const NamedArray& array : arrays) {
    SSL_RETURN_IF_ERROR(
        file_system.Rename(absl::StrCat(staging, "/", array.file), absl::StrCat(directory, "/", array.file)));
  }
  return file_system.SyncDirectory(directory);
}

absl::StatusOr<std::vector<WrittenArray>> WriteAndReplace(const std::string& directory, const std::string& staging,
                                                          const std::vector<NamedArray>& arrays,
                                                          const std::vector<std::string>& earlier,
                                                          FileSystem& file_system, Communicator& communicator) {
  constexpr char kWhat[] = "writing arrays";
  absl::StatusOr<std::vector<WrittenArray>> written;
  const auto write = [&] {
    written = WriteInto(staging, arrays, file_system);
    return written.status();
  };
  // A rank with a full disk leaves the earlier set of all ranks whole.
  SSL_RETURN_IF_ERROR(AgreeOnWork(write, kWhat, communicator));
  const auto remove = [&] { return RemoveEarlier(directory, earlier, file_system); };
  SSL_RETURN_IF_ERROR(AgreeOnWork(remove, kWhat, communicator));
  const auto put = [&] { return PutInPlace(directory, staging, arrays, file_system); };
  SSL_RETURN_IF_ERROR(AgreeOnWork(put, kWhat, communicator));
  return written;
}

}  // namespace

absl::StatusOr<std::vector<WrittenArray>> ReplaceArrays(const std::string& directory,
                                                        const std::vector<NamedArray>& arrays,
                                                        std::vector<std::string> earlier, FileSystem& file_system,
                                                        Communicator& communicator) {
  const std::string first = arrays.empty() ? "" : arrays.front().file;
  const std::string staging = absl::StrCat(directory, "/", first, ".tmp-", getpid());
  for (const NamedArray& array : arrays) earlier.push_back(array.file);
  absl::StatusOr<std::vector<WrittenArray>> written =
      WriteAndReplace(directory, staging, arrays, earlier, file_system, communicator);
  // What stays is no array, and RemoveUnfinishedFiles removes it.
  if (!arrays.empty()) file_system.RemoveAll(staging).IgnoreError();
  return written;
}

}  // namespace ssl
