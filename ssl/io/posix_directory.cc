// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/posix_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "absl/strings/string_view.h"
#include "ssl/io/errno_status.h"

namespace ssl {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { closedir(stream); }
};

// Some file systems (XFS without ftype, some network ones) leave the type out.
mode_t TypeOf(const dirent& entry, int directory) {
  if (entry.d_type != DT_UNKNOWN) return DTTOIF(entry.d_type);
  struct stat info;
  return fstatat(directory, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode & S_IFMT : 0;
}

}  // namespace

absl::StatusOr<std::vector<PosixEntry>> ReadDirectory(UniqueFd directory, const std::string& path) {
  const std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(directory.get()));
  if (stream == nullptr) return ErrnoStatus(errno, "listing", path);
  directory.Release();  // the stream closes it
  std::vector<PosixEntry> entries;
  errno = 0;
  for (const dirent* entry = readdir(stream.get()); entry != nullptr; entry = readdir(stream.get())) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({std::string(name), TypeOf(*entry, dirfd(stream.get()))});
    errno = 0;  // the end and an error look alike otherwise
  }
  if (errno != 0) return ErrnoStatus(errno, "listing", path);
  std::sort(entries.begin(), entries.end(), [](const PosixEntry& a, const PosixEntry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace ssl
