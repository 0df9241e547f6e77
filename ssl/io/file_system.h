// SPDX-License-Identifier: Apache-2.0
//
// The file calls of the program behind one interface, so that tests can make any of them
// fail (ssl/io/testing/fault_file_system.h). Paths are UTF-8 bytes, absolute or relative to
// the working directory. EINTR is retried, short reads and writes are continued, and every
// error names the path and the reason (ssl/io/errno_status.h says which code).
// A FileSystem is thread-safe; a file object belongs to one thread, ReadableFile to any.
//
//   SSL_ASSIGN_OR_RETURN(auto file, file_system.Create(path));
//   SSL_RETURN_IF_ERROR(file->Append(bytes));
//   SSL_RETURN_IF_ERROR(file->Sync());
//   SSL_RETURN_IF_ERROR(file->Close());

#ifndef SSL_IO_FILE_SYSTEM_H_
#define SSL_IO_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/io/mapped_file.h"

namespace ssl {

// The destructor closes without a report; call Close to learn of a late error. After a
// failed Append or Sync the content is unknown: write a new file, do not retry.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Returns when the bytes so far are on stable storage (fsync).
  virtual absl::Status Sync() = 0;
  // A second call is a FailedPrecondition.
  virtual absl::Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Size in bytes when it was opened.
  virtual int64_t size() const = 0;
  // Fills `into` from `offset`; kDataLoss when the file ends before.
  virtual absl::Status ReadAt(int64_t offset, absl::Span<char> into) const = 0;
};

// Held until destroyed, or until the process ends in any way. Not inherited by exec.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // FailedPrecondition when the file that was locked is no longer the one at its path: another process can hold a
  // lock under the same name then.
  virtual absl::Status CheckHeld() const = 0;
};

// A name in a directory, and what it stands for. Which a link leads to is not looked up: that is a call for each.
struct DirectoryEntry {
  enum class Kind { kDirectory, kLink, kOther };
  std::string name;  // not a path
  Kind kind = Kind::kOther;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens a new file; a file or link of that name is replaced, never written through.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens a file, made when missing, to write at its end. A link is a FailedPrecondition.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) = 0;
  // Regular files only: a directory, FIFO or device is an InvalidArgument.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) = 0;
  // A regular file as memory (ssl/io/mapped_file.h).
  virtual absl::StatusOr<MappedFile> Map(const std::string& path) = 0;
  // The whole content of a regular file of at most 1 GiB.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;

  virtual absl::StatusOr<int64_t> Size(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
  // Names, not paths, in byte order, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // The same with kinds, for a walk of a large tree: where directories tell them, no file costs a call of its own.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& directory) = 0;
  // Equal for two paths exactly when they lead to the same file or directory, whatever links and ".." are on the way.
  virtual absl::StatusOr<std::string> Identity(const std::string& path) = 0;

  // Makes missing directories on the way too, each synced into its parent. OK when it exists.
  virtual absl::Status CreateDirectories(const std::string& directory) = 0;
  // Replaces a file `to` in one step. Durable after SyncDirectory of both parents.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Each of two paths, which lie in one file system, gets what the other had, in one step. Durable like Rename.
  // Unimplemented where the file system cannot do that, such as NFS.
  virtual absl::Status Exchange(const std::string& left, const std::string& right);
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // Removes a directory or file with everything below; links are removed, not followed. OK
  // when nothing is there.
  virtual absl::Status RemoveAll(const std::string& path) = 0;
  // Makes names that were created, renamed or removed in `directory` durable.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;

  // Takes the lock file `path` (flock; a link is a FailedPrecondition), made when missing and never removed, without
  // waiting. kUnavailable, naming the holder's process and host, when another has it. A
  // link is not followed.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// The directory part of a path: "a" of "a/b" and of "a/b/", "." of "b", "/" of "/b".
std::string ParentDirectory(absl::string_view path);

// FailedPrecondition when `path` itself is a symbolic link, whatever it leads to: asked about the folders that a run
// makes below its output directory. The output directory itself is the user's word, and may be a link.
absl::Status CheckNoLink(const std::string& path);

// The file system of the machine; lives as long as the process.
FileSystem& PosixFileSystem();

}  // namespace ssl

#endif  // SSL_IO_FILE_SYSTEM_H_
