// SPDX-License-Identifier: Apache-2.0
//
// A FileSystem that fails where a test asks it to. Mutating calls (Create, OpenAppend,
// Append, Sync, Close, CreateDirectories, Rename, Exchange, RemoveFile, RemoveAll, SyncDirectory,
// Lock) are counted from 1; reading calls pass uncounted, unless set_fault_reads asks for them, too.
// A call that fails has no effect, except that Append writes the first half with
// set_short_writes, and Close closes; Exists and IsDirectory say false. Thread-safe.
//
//   for (int call = 1; ; ++call) {
//     FaultFileSystem faults(PosixFileSystem(), dir);
//     faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
//     absl::Status saved = Save(faults);
//     if (faults.calls() < call) break;   // every call has failed once
//     ...the previous checkpoint verifies...
//   }

#ifndef SSL_IO_TESTING_FAULT_FILE_SYSTEM_H_
#define SSL_IO_TESTING_FAULT_FILE_SYSTEM_H_

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/durable_tree.h"

namespace ssl {

class FaultFileSystem : public FileSystem {
 public:
  enum class Repeat { kOnce, kFromThenOn };

  // Files under `root`, an existing directory, are modelled for DropUnsynced; all that lies
  // there now counts as durable. `base` must outlive this object and its files.
  FaultFileSystem(FileSystem& base, std::string root);

  // Counted call number `call` fails with `error_number`, and with kFromThenOn all after it.
  void FailCall(int call, int error_number, Repeat repeat);
  // The process "dies" at that call: it and all later ones fail with EIO, without any effect.
  void CrashAtCall(int call);
  // The process ends (_exit) instead of making that call; with set_short_writes, after half of an Append.
  void ExitAtCall(int call, int exit_code);
  void StopFailing();
  // Runs `action` before that counted call: what another process does at that moment.
  void ActAtCall(int call, std::function<void()> action);
  // A failing Append writes its first half before it fails.
  void set_short_writes(bool short_writes);
  // Reading calls (OpenRead, ReadAt, Read, Map, Size, Exists, IsDirectory, List, ListEntries, Identity, CheckHeld) are
  // counted and fail as well.
  void set_fault_reads(bool fault_reads);
  // Counted calls so far, failed ones included.
  int calls() const;
  // Calls that were made to fail.
  int failed_calls() const;

  // Power loss: rewrites `root` on the base without the bytes and names that were not synced.
  // Files that are still open must not be used afterwards.
  absl::Status DropUnsynced();
  // The same, with an arbitrary part of what was not synced: ssl/io/testing/durable_tree.h.
  absl::Status MixUnsynced(std::mt19937_64& random);

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  absl::StatusOr<MappedFile> Map(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path) override;
  absl::StatusOr<int64_t> Size(const std::string& path) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& directory) override;
  absl::StatusOr<std::string> Identity(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& directory) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& left, const std::string& right) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveAll(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  class File;
  class OpenedFile;
  class HeldLock;

  // Counts a call; an error when it has to fail.
  absl::Status CountCall(absl::string_view operation, const std::string& path);
  void ActIfDue();
  absl::Status CountRead(absl::string_view operation, const std::string& path);
  absl::StatusOr<std::unique_ptr<WritableFile>> Open(const std::string& path, bool truncate);
  // Changes the model under the lock.
  void Model(const std::function<void(DurableTree&)>& change);
  bool short_writes() const;
  void ExitIfDue() const;

  FileSystem& base_;
  mutable absl::Mutex mutex_;
  DurableTree tree_ ABSL_GUARDED_BY(mutex_);
  absl::Status imported_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int failed_ ABSL_GUARDED_BY(mutex_) = 0;
  int fail_at_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never
  int error_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int act_at_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never
  std::function<void()> action_ ABSL_GUARDED_BY(mutex_);
  bool from_then_on_ ABSL_GUARDED_BY(mutex_) = false;
  bool short_writes_ ABSL_GUARDED_BY(mutex_) = false;
  bool fault_reads_ ABSL_GUARDED_BY(mutex_) = false;
  int exit_code_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: calls fail, and the process goes on
};

}  // namespace ssl

#endif  // SSL_IO_TESTING_FAULT_FILE_SYSTEM_H_
