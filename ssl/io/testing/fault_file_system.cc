// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/testing/fault_file_system.h"

#include <errno.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/durable_tree.h"

namespace ssl {

class FaultFileSystem::File : public WritableFile {
 public:
  File(FaultFileSystem& owner, std::unique_ptr<WritableFile> base, std::string path, std::shared_ptr<DurableNode> node)
      : owner_(owner), base_(std::move(base)), path_(std::move(path)), node_(std::move(node)) {}

  absl::Status Append(absl::string_view bytes) override {
    const absl::Status fault = owner_.CountCall("writing", path_);
    if (!fault.ok()) {
      if (owner_.short_writes()) AppendNow(bytes.substr(0, bytes.size() / 2)).IgnoreError();
      owner_.ExitIfDue();
      return fault;
    }
    return AppendNow(bytes);
  }

  absl::Status Sync() override {
    SSL_RETURN_IF_ERROR(owner_.CountCall("syncing", path_));
    SSL_RETURN_IF_ERROR(base_->Sync());
    owner_.Model([this](DurableTree&) {
      if (node_ != nullptr) node_->synced = node_->bytes;
    });
    return absl::OkStatus();
  }

  absl::Status Close() override {
    const absl::Status fault = owner_.CountCall("closing", path_);
    const absl::Status closed = base_->Close();
    return fault.ok() ? closed : fault;
  }

 private:
  absl::Status AppendNow(absl::string_view bytes) {
    SSL_RETURN_IF_ERROR(base_->Append(bytes));
    owner_.Model([&](DurableTree&) {
      if (node_ != nullptr) absl::StrAppend(&node_->bytes, bytes);
    });
    return absl::OkStatus();
  }

  FaultFileSystem& owner_;
  const std::unique_ptr<WritableFile> base_;
  const std::string path_;
  const std::shared_ptr<DurableNode> node_;  // nullptr outside the modelled root
};

class FaultFileSystem::OpenedFile : public ReadableFile {
 public:
  OpenedFile(FaultFileSystem& owner, std::unique_ptr<ReadableFile> base, std::string path)
      : owner_(owner), base_(std::move(base)), path_(std::move(path)) {}

  int64_t size() const override { return base_->size(); }
  absl::Status ReadAt(int64_t offset, absl::Span<char> into) const override {
    SSL_RETURN_IF_ERROR(owner_.CountRead("reading", path_));
    return base_->ReadAt(offset, into);
  }

 private:
  FaultFileSystem& owner_;
  const std::unique_ptr<ReadableFile> base_;
  const std::string path_;
};

class FaultFileSystem::HeldLock : public FileLock {
 public:
  HeldLock(FaultFileSystem& owner, std::unique_ptr<FileLock> base, std::string path)
      : owner_(owner), base_(std::move(base)), path_(std::move(path)) {}

  absl::Status CheckHeld() const override {
    SSL_RETURN_IF_ERROR(owner_.CountRead("looking it up", path_));
    return base_->CheckHeld();
  }

 private:
  FaultFileSystem& owner_;
  const std::unique_ptr<FileLock> base_;
  const std::string path_;
};

FaultFileSystem::FaultFileSystem(FileSystem& base, std::string root) : base_(base), tree_(std::move(root)) {
  absl::MutexLock lock(&mutex_);
  imported_ = tree_.Import(base_);
}

void FaultFileSystem::FailCall(int call, int error_number, Repeat repeat) {
  absl::MutexLock lock(&mutex_);
  fail_at_ = call;
  error_number_ = error_number;
  from_then_on_ = repeat == Repeat::kFromThenOn;
}

void FaultFileSystem::CrashAtCall(int call) {
  FailCall(call, EIO, Repeat::kFromThenOn);
  set_short_writes(false);
}

void FaultFileSystem::ExitAtCall(int call, int exit_code) {
  FailCall(call, EIO, Repeat::kFromThenOn);
  absl::MutexLock lock(&mutex_);
  exit_code_ = exit_code;
}

void FaultFileSystem::ActAtCall(int call, std::function<void()> action) {
  absl::MutexLock lock(&mutex_);
  act_at_ = call;
  action_ = std::move(action);
}

void FaultFileSystem::StopFailing() { FailCall(0, 0, Repeat::kOnce); }

void FaultFileSystem::set_fault_reads(bool fault_reads) {
  absl::MutexLock lock(&mutex_);
  fault_reads_ = fault_reads;
}

void FaultFileSystem::set_short_writes(bool short_writes) {
  absl::MutexLock lock(&mutex_);
  short_writes_ = short_writes;
}

int FaultFileSystem::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

int FaultFileSystem::failed_calls() const {
  absl::MutexLock lock(&mutex_);
  return failed_;
}

absl::Status FaultFileSystem::DropUnsynced() {
  absl::MutexLock lock(&mutex_);
  SSL_RETURN_IF_ERROR(imported_);
  return tree_.WriteSynced(base_);
}

absl::Status FaultFileSystem::MixUnsynced(std::mt19937_64& random) {
  absl::MutexLock lock(&mutex_);
  SSL_RETURN_IF_ERROR(imported_);
  return tree_.WriteMixture(base_, random);
}

// The file's own code ends the process where a part of a call comes first.
void FaultFileSystem::ExitIfDue() const {
  absl::MutexLock lock(&mutex_);
  if (exit_code_ >= 0) _exit(exit_code_);
}

// Without the lock: the action may use this file system.
void FaultFileSystem::ActIfDue() {
  std::function<void()> action;
  {
    absl::MutexLock lock(&mutex_);
    if (calls_ + 1 == act_at_) action = std::exchange(action_, nullptr);
  }
  if (action != nullptr) action();
}

absl::Status FaultFileSystem::CountRead(absl::string_view operation, const std::string& path) {
  bool counts = false;
  {
    absl::MutexLock lock(&mutex_);
    counts = fault_reads_;
  }
  return counts ? CountCall(operation, path) : absl::OkStatus();
}

absl::Status FaultFileSystem::CountCall(absl::string_view operation, const std::string& path) {
  ActIfDue();
  absl::MutexLock lock(&mutex_);
  ++calls_;
  const bool fails = fail_at_ > 0 && (calls_ == fail_at_ || (from_then_on_ && calls_ > fail_at_));
  if (!fails) return absl::OkStatus();
  ++failed_;
  const bool writes_half = short_writes_ && operation == "writing";
  if (exit_code_ >= 0 && !writes_half) _exit(exit_code_);
  return ErrnoStatus(error_number_, operation, path);
}

void FaultFileSystem::Model(const std::function<void(DurableTree&)>& change) {
  absl::MutexLock lock(&mutex_);
  change(tree_);
}

bool FaultFileSystem::short_writes() const {
  absl::MutexLock lock(&mutex_);
  return short_writes_;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::Open(const std::string& path, bool truncate) {
  SSL_RETURN_IF_ERROR(CountCall("opening", path));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, truncate ? base_.Create(path) : base_.OpenAppend(path));
  std::shared_ptr<DurableNode> node;
  Model([&](DurableTree& tree) { node = tree.OpenFile(path, truncate); });
  return std::make_unique<File>(*this, std::move(file), path, std::move(node));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::Create(const std::string& path) {
  return Open(path, /*truncate=*/true);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::OpenAppend(const std::string& path) {
  return Open(path, /*truncate=*/false);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::OpenRead(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountRead("opening", path));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, base_.OpenRead(path));
  return std::make_unique<OpenedFile>(*this, std::move(file), path);
}

absl::StatusOr<MappedFile> FaultFileSystem::Map(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountRead("mapping", path));
  return base_.Map(path);
}

absl::StatusOr<std::string> FaultFileSystem::Read(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountRead("reading", path));
  return base_.Read(path);
}

absl::StatusOr<int64_t> FaultFileSystem::Size(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountRead("looking it up", path));
  return base_.Size(path);
}

bool FaultFileSystem::Exists(const std::string& path) {
  return CountRead("looking it up", path).ok() && base_.Exists(path);
}

bool FaultFileSystem::IsDirectory(const std::string& path) {
  return CountRead("looking it up", path).ok() && base_.IsDirectory(path);
}

absl::StatusOr<std::vector<std::string>> FaultFileSystem::List(const std::string& directory) {
  SSL_RETURN_IF_ERROR(CountRead("listing", directory));
  return base_.List(directory);
}

absl::StatusOr<std::vector<DirectoryEntry>> FaultFileSystem::ListEntries(const std::string& directory) {
  SSL_RETURN_IF_ERROR(CountRead("listing", directory));
  return base_.ListEntries(directory);
}

absl::StatusOr<std::string> FaultFileSystem::Identity(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountRead("looking it up", path));
  return base_.Identity(path);
}

absl::Status FaultFileSystem::CreateDirectories(const std::string& directory) {
  SSL_RETURN_IF_ERROR(CountCall("making the directory", directory));
  SSL_RETURN_IF_ERROR(base_.CreateDirectories(directory));
  Model([&](DurableTree& tree) { tree.CreateDirectories(directory); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::Rename(const std::string& from, const std::string& to) {
  SSL_RETURN_IF_ERROR(CountCall(absl::StrCat("renaming to ", to), from));
  SSL_RETURN_IF_ERROR(base_.Rename(from, to));
  Model([&](DurableTree& tree) { tree.Rename(from, to); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::Exchange(const std::string& left, const std::string& right) {
  SSL_RETURN_IF_ERROR(CountCall(absl::StrCat("exchanging with ", right), left));
  SSL_RETURN_IF_ERROR(base_.Exchange(left, right));
  Model([&](DurableTree& tree) { tree.Exchange(left, right); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::RemoveFile(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountCall("removing", path));
  SSL_RETURN_IF_ERROR(base_.RemoveFile(path));
  Model([&](DurableTree& tree) { tree.Remove(path); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::RemoveAll(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountCall("removing", path));
  SSL_RETURN_IF_ERROR(base_.RemoveAll(path));
  Model([&](DurableTree& tree) { tree.Remove(path); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::SyncDirectory(const std::string& directory) {
  SSL_RETURN_IF_ERROR(CountCall("syncing", directory));
  SSL_RETURN_IF_ERROR(base_.SyncDirectory(directory));
  Model([&](DurableTree& tree) { tree.SyncDirectory(directory); });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultFileSystem::Lock(const std::string& path) {
  SSL_RETURN_IF_ERROR(CountCall("locking", path));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, base_.Lock(path));
  Model([&](DurableTree& tree) { tree.OpenFile(path, /*truncate=*/true); });
  return std::make_unique<HeldLock>(*this, std::move(lock), path);
}

}  // namespace ssl
