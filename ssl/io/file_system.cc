// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/host_name.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/posix_directory.h"
#include "ssl/io/posix_fd.h"

namespace ssl {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;
constexpr int64_t kMaxReadBytes = int64_t{1} << 30;
constexpr int64_t kMaxHolderBytes = 512;
constexpr int64_t kWriteAheadBytes = int64_t{8} << 20;

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    SSL_RETURN_IF_ERROR(CheckOpen("appending"));
    SSL_RETURN_IF_ERROR(WriteAll(fd_.get(), bytes, path_));
    waiting_ += static_cast<int64_t>(bytes.size());
    if (waiting_ >= kWriteAheadBytes) StartWriting();
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    SSL_RETURN_IF_ERROR(CheckOpen("syncing"));
    return SyncFd(fd_.get(), path_);
  }

  absl::Status Close() override {
    SSL_RETURN_IF_ERROR(CheckOpen("closing"));
    // Linux frees the descriptor even when close is interrupted: a retry could close another.
    if (close(fd_.Release()) != 0 && errno != EINTR) return ErrnoStatus(errno, "closing", path_);
    return absl::OkStatus();
  }

 private:
  // Lets the disk work while more bytes are made, so that a sync finds little left. It neither waits nor promises
  // anything: what goes wrong, the sync reports.
  void StartWriting() {
    waiting_ = 0;
    sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }

  absl::Status CheckOpen(absl::string_view operation) const {
    if (fd_.get() >= 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("file ", path_, ": ", operation, " after it was closed"));
  }

  UniqueFd fd_;
  const std::string path_;
  int64_t waiting_ = 0;  // bytes since the disk was last told to begin
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(UniqueFd fd, std::string path, int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  int64_t size() const override { return size_; }

  absl::Status ReadAt(int64_t offset, absl::Span<char> into) const override {
    return ReadExactly(fd_.get(), offset, into, path_);
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
  const int64_t size_;
};

class PosixFileLock : public FileLock {
 public:
  PosixFileLock(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status CheckHeld() const override {
    struct stat held;
    struct stat named;
    if (fstat(fd_.get(), &held) != 0) return ErrnoStatus(errno, "looking it up", path_);
    if (lstat(path_.c_str(), &named) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return absl::FailedPreconditionError(absl::StrCat(path_, " is gone"));
      return ErrnoStatus(errno, "looking it up", path_);
    }
    if (held.st_dev == named.st_dev && held.st_ino == named.st_ino) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path_, " is another file than the one that was locked"));
  }

 private:
  UniqueFd fd_;  // closing it frees the lock
  const std::string path_;
};

// A lock file holds "process <pid> on host <name>".
absl::Status LockIsHeld(int fd, const std::string& path) {
  std::string holder(kMaxHolderBytes, '\0');
  SSL_ASSIGN_OR_RETURN(const int64_t size, ReadUpTo(fd, 0, absl::MakeSpan(holder), path));
  holder.resize(size);
  absl::StripAsciiWhitespace(&holder);
  if (holder.empty()) holder = "an unknown process";
  return absl::UnavailableError(
      absl::StrCat("lock ", path, ": is held by ", holder, "; two runs cannot use one directory"));
}

absl::Status TooLarge(const std::string& path, int64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("file ", path, ": has ", size, " bytes or more, expected at most ", kMaxReadBytes));
}

// error_number: EEXIST when the directory was to be made, ENOTDIR when it was to be read.
absl::Status NoDirectory(const std::string& path, int error_number) {
  const std::string message =
      absl::StrCat("file ", path, ": is in the way (", std::generic_category().message(error_number),
                   "), and a directory is needed there; move it away, or choose another place");
  return WithDetail(absl::FailedPreconditionError(message), kDetailErrno, absl::StrCat(error_number));
}

absl::StatusOr<struct stat> Stat(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "looking it up", path);
  return info;
}

absl::StatusOr<UniqueFd> OpenDirectory(const std::string& directory) {
  absl::StatusOr<UniqueFd> fd = OpenFd(directory, O_RDONLY | O_DIRECTORY, "listing");
  struct stat info;
  const bool is_other = !fd.ok() && stat(directory.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
  return is_other ? NoDirectory(directory, ENOTDIR) : std::move(fd);
}

DirectoryEntry::Kind KindOf(mode_t type) {
  if (S_ISDIR(type)) return DirectoryEntry::Kind::kDirectory;
  return S_ISLNK(type) ? DirectoryEntry::Kind::kLink : DirectoryEntry::Kind::kOther;
}

// A file that is new for certain (O_EXCL): what stood there before, a link too, is removed and not written through.
// What is neither file nor link, such as a device, is not removed.
absl::StatusOr<UniqueFd> CreateFd(const std::string& path) {
  absl::StatusOr<UniqueFd> fd = OpenFd(path, O_WRONLY | O_CREAT | O_EXCL, "creating");
  struct stat info;
  if (fd.ok() || lstat(path.c_str(), &info) != 0) return fd;
  if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) return OpenOutputFd(path, O_WRONLY | O_TRUNC, "creating");
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, "replacing", path);
  return OpenFd(path, O_WRONLY | O_CREAT | O_EXCL, "creating");
}

class PosixFileSystemImpl : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(UniqueFd fd, CreateFd(path));
    return std::make_unique<PosixWritableFile>(std::move(fd), path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenOutputFd(path, O_WRONLY | O_CREAT | O_APPEND, "opening to append"));
    return std::make_unique<PosixWritableFile>(std::move(fd), path);
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override {
    // O_NONBLOCK: opening a FIFO would wait for a writer; regular files ignore it.
    SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenFd(path, O_RDONLY | O_NONBLOCK, "opening"));
    SSL_ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(fd.get(), path));
    return std::make_unique<PosixReadableFile>(std::move(fd), path, size);
  }

  absl::StatusOr<MappedFile> Map(const std::string& path) override { return MappedFile::Open(path); }

  // Reads to the end, whatever the size says: files of /proc claim to be empty.
  absl::StatusOr<std::string> Read(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFd(path, O_RDONLY | O_NONBLOCK, "opening"));
    SSL_ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(fd.get(), path));
    if (size > kMaxReadBytes) return TooLarge(path, size);
    std::string content;
    int64_t got = 0;
    // One byte more than the size, so that the first round can meet the end.
    for (int64_t room = size + 1;; room = kReadBytes) {
      content.resize(got + room);
      const absl::Span<char> rest = absl::MakeSpan(content).subspan(got);
      SSL_ASSIGN_OR_RETURN(const int64_t count, ReadUpTo(fd.get(), got, rest, path));
      got += count;
      if (count < room) break;
      if (got > kMaxReadBytes) return TooLarge(path, got);
    }
    content.resize(got);
    return content;
  }

  absl::StatusOr<int64_t> Size(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(const struct stat info, Stat(path));
    return static_cast<int64_t>(info.st_size);
  }

  bool Exists(const std::string& path) override { return Stat(path).ok(); }

  bool IsDirectory(const std::string& path) override {
    const absl::StatusOr<struct stat> info = Stat(path);
    return info.ok() && S_ISDIR(info->st_mode);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    SSL_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, ListEntries(directory));
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (DirectoryEntry& entry : entries) names.push_back(std::move(entry.name));
    return names;
  }

  absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& directory) override {
    SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenDirectory(directory));
    SSL_ASSIGN_OR_RETURN(std::vector<PosixEntry> found, ReadDirectory(std::move(fd), directory));
    std::vector<DirectoryEntry> entries;
    entries.reserve(found.size());
    for (PosixEntry& entry : found) entries.push_back({std::move(entry.name), KindOf(entry.type)});
    return entries;
  }

  absl::StatusOr<std::string> Identity(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(const struct stat info, Stat(path));
    return absl::StrCat(info.st_dev, ":", info.st_ino);
  }

  absl::Status CreateDirectories(const std::string& directory) override {
    if (IsDirectory(directory)) return absl::OkStatus();
    const std::string parent = ParentDirectory(directory);
    if (parent != directory) SSL_RETURN_IF_ERROR(CreateDirectories(parent));
    constexpr mode_t kMode = 0777;
    if (mkdir(directory.c_str(), kMode) != 0) {
      const int error = errno;
      // Another process may have been faster.
      if (error == EEXIST && IsDirectory(directory)) return absl::OkStatus();
      if (error == EEXIST) return NoDirectory(directory, error);
      return ErrnoStatus(error, "making the directory", directory);
    }
    return SyncDirectory(parent);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat("renaming to ", to), from);
  }

  absl::Status Exchange(const std::string& left, const std::string& right) override {
    if (renameat2(AT_FDCWD, left.c_str(), AT_FDCWD, right.c_str(), RENAME_EXCHANGE) == 0) return absl::OkStatus();
    if (errno == EINVAL || errno == ENOSYS) return FileSystem::Exchange(left, right);
    return ErrnoStatus(errno, absl::StrCat("exchanging with ", right), left);
  }

  absl::Status RemoveFile(const std::string& path) override {
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, "removing", path);
  }

  absl::Status RemoveAll(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return ErrnoStatus(error.value(), "removing", path);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& directory) override {
    SSL_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFd(directory, O_RDONLY | O_DIRECTORY, "opening to sync"));
    // File systems that cannot sync a directory answer EINVAL; there is no other way to ask.
    if (fsync(fd.get()) == 0 || errno == EINVAL) return absl::OkStatus();
    if (errno == EINTR) return SyncFd(fd.get(), directory);
    return ErrnoStatus(errno, "syncing", directory);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    SSL_ASSIGN_OR_RETURN(UniqueFd fd, OpenOutputFd(path, O_RDWR | O_CREAT, "opening to lock"));
    int result = 0;
    do {
      result = flock(fd.get(), LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) return LockIsHeld(fd.get(), path);
    if (result != 0) return ErrnoStatus(errno, "locking", path);
    const int descriptor = fd.get();
    auto lock = std::make_unique<PosixFileLock>(std::move(fd), path);
    // The file may have been removed between open and flock: then the next one could lock a new file of that name.
    SSL_RETURN_IF_ERROR(lock->CheckHeld());
    // The name is for messages only: the kernel holds the lock, so none outlives its process.
    if (ftruncate(descriptor, 0) != 0) return ErrnoStatus(errno, "emptying", path);
    const std::string holder = absl::StrCat("process ", getpid(), " on host ", HostName("unknown"), "\n");
    SSL_RETURN_IF_ERROR(WriteAll(descriptor, holder, path));
    return lock;
  }
};

}  // namespace

absl::Status FileSystem::Exchange(const std::string& left, const std::string& right) {
  return absl::UnimplementedError(absl::StrCat(left, ": this file system cannot exchange it with ", right));
}

std::string ParentDirectory(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

absl::Status CheckNoLink(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is a symbolic link, and output follows none; remove the link, or give the directory that it ",
      "leads to as the output directory"));
}

FileSystem& PosixFileSystem() {
  static PosixFileSystemImpl* file_system = new PosixFileSystemImpl;
  return *file_system;
}

}  // namespace ssl
