// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/folder_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/posix_directory.h"
#include "ssl/io/posix_fd.h"

namespace ssl {
namespace {

// glibc has no function for it.
int OpenBeneath(int folder, const char* path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  while (true) {
    const long fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
    // EAGAIN: something was renamed meanwhile.
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) return static_cast<int>(fd);
  }
}

class FileBelow : public ReadableFile {
 public:
  FileBelow(UniqueFd fd, std::string path, int64_t size) : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  int64_t size() const override { return size_; }

  absl::Status ReadAt(int64_t offset, absl::Span<char> into) const override {
    return ReadExactly(fd_.get(), offset, into, path_);
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FolderRoot>> FolderRoot::Open(const std::string& folder) {
  SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenFd(folder, O_RDONLY | O_DIRECTORY, "opening"));
  const UniqueFd probe(OpenBeneath(fd.get(), ".", O_RDONLY | O_DIRECTORY));
  if (probe.get() < 0) {
    return absl::UnimplementedError(absl::StrCat("file ", folder,
                                                 ": the system cannot keep paths below it (openat2, Linux 5.6): ",
                                                 ErrnoStatus(errno, "opening", folder).message()));
  }
  return absl::WrapUnique(new FolderRoot(absl::StrCat(absl::StripSuffix(folder, "/"), "/"), fd.Release()));
}

FolderRoot::FolderRoot(std::string prefix, int fd) : prefix_(std::move(prefix)), fd_(fd) {}

FolderRoot::~FolderRoot() { close(fd_); }

absl::StatusOr<int> FolderRoot::OpenBelow(const std::string& path, int flags, absl::string_view operation) const {
  absl::string_view rest = path;
  const bool is_root = rest == absl::StripSuffix(prefix_, "/") || rest == prefix_;
  if (path.find('\0') != std::string::npos || !(is_root || absl::ConsumePrefix(&rest, prefix_))) {
    return absl::PermissionDeniedError(absl::StrCat("file ", path, ": does not lie below ", prefix_));
  }
  const int fd = OpenBeneath(fd_, is_root ? "." : rest.data(), flags);  // `rest` ends where `path` does
  if (fd >= 0) return fd;
  if (errno != EXDEV) return ErrnoStatus(errno, operation, path);
  return absl::PermissionDeniedError(
      absl::StrCat("file ", path, ": leads out of ", prefix_, ", or goes through a link with an absolute path"));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FolderRoot::OpenRead(const std::string& path) const {
  // A pipe would wait for its writer otherwise.
  SSL_ASSIGN_OR_RETURN(const int opened, OpenBelow(path, O_RDONLY | O_NONBLOCK, "opening"));
  UniqueFd fd(opened);
  SSL_ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(fd.get(), path));
  return std::make_unique<FileBelow>(std::move(fd), path, size);
}

absl::StatusOr<std::vector<DirectoryEntry>> FolderRoot::ListEntries(const std::string& directory) const {
  SSL_ASSIGN_OR_RETURN(const int opened, OpenBelow(directory, O_RDONLY | O_DIRECTORY, "listing"));
  SSL_ASSIGN_OR_RETURN(std::vector<PosixEntry> found, ReadDirectory(UniqueFd(opened), directory));
  std::vector<DirectoryEntry> entries;
  entries.reserve(found.size());
  for (PosixEntry& entry : found) {
    const DirectoryEntry::Kind other = S_ISLNK(entry.type) ? DirectoryEntry::Kind::kLink : DirectoryEntry::Kind::kOther;
    const DirectoryEntry::Kind kind = S_ISDIR(entry.type) ? DirectoryEntry::Kind::kDirectory : other;
    entries.push_back({std::move(entry.name), kind});
  }
  return entries;
}

absl::StatusOr<FolderRoot::Place> FolderRoot::LookUp(const std::string& path) const {
  SSL_ASSIGN_OR_RETURN(const int opened, OpenBelow(path, O_PATH, "looking it up"));
  const UniqueFd fd(opened);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "looking it up", path);
  return Place{S_ISDIR(info.st_mode), absl::StrCat(info.st_dev, ":", info.st_ino)};
}

}  // namespace ssl
