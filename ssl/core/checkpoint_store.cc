// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpoint_store.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/core/manifest_rows.h"
#include "ssl/distributed/agree.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/mapped_tensor.h"

namespace ssl {
namespace {

constexpr char kTemporarySuffix[] = ".tmp";
constexpr char kManifestName[] = "MANIFEST.json";
constexpr char kLatestName[] = "LATEST";
constexpr char kFinishedName[] = "FINISHED";
constexpr char kDamagedSuffix[] = ".damaged";
constexpr char kSetAsideSuffix[] = ".set_aside";
// Of what an atomic write of LATEST or FINISHED leaves when the process is killed (ssl/io/atomic_file.cc).
constexpr absl::string_view kUnfinishedNotes[] = {"LATEST.tmp-", "FINISHED.tmp-"};

// Whether an interrupted save or process left this, and nothing needs it.
bool IsLeftOver(absl::string_view name) {
  return (absl::StartsWith(name, "step_") && absl::EndsWith(name, kTemporarySuffix)) ||
         absl::StartsWith(name, kUnfinishedNotes[0]) || absl::StartsWith(name, kUnfinishedNotes[1]) ||
         CheckpointNames::IsLeftOver(name);
}

// A rename cannot replace it: the note could not be written at the end of a run.
absl::Status CheckIsNoDirectory(const std::string& path, FileSystem& file_system) {
  if (!file_system.IsDirectory(path)) return absl::OkStatus();
  const std::string message =
      absl::StrCat("directory ", path, ": is in the way, and a file is needed there; move it away");
  return WithDetail(absl::FailedPreconditionError(message), kDetailErrno, absl::StrCat(EISDIR));
}

// A file of a save that is not found was there: its directory has gone, which is no mistake of the configuration.
absl::Status OfStorage(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return WithDetail(absl::FailedPreconditionError(status.message()), kDetailErrno, DetailOf(status, kDetailErrno));
}

}  // namespace

std::string CheckpointDirectory(absl::string_view run_directory) { return absl::StrCat(run_directory, "/checkpoints"); }

CheckpointStore::CheckpointStore(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator)
    : options_(std::move(options)),
      file_system_(file_system),
      communicator_(communicator),
      names_(options_.directory, file_system) {}

std::string CheckpointStore::StepDirectory(int64_t iteration) const {
  return absl::StrCat(options_.directory, "/", StepName(iteration));
}

absl::Status CheckpointStore::Open() {
  const auto open = [this]() -> absl::Status {
    SSL_RETURN_IF_ERROR(CheckNoLink(options_.directory));
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(options_.directory));
    SSL_RETURN_IF_ERROR(CheckIsNoDirectory(absl::StrCat(options_.directory, "/", kFinishedName), file_system_));
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(options_.directory));
    for (const std::string& name : names) {
      if (!IsLeftOver(name)) continue;
      SSL_RETURN_IF_ERROR(file_system_.RemoveAll(absl::StrCat(options_.directory, "/", name)));
    }
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> damaged, names_.DropDamaged());
    for (const std::string& what : damaged) SSL_LOG(WARNING) << what;
    return absl::OkStatus();
  };
  return OnRankZero(open, "opening the checkpoint directory", communicator_);
}

// Else making the step's directory would make the whole run directory anew, unlocked, or write into another run's.
absl::Status CheckpointStore::CheckInUse() const {
  return options_.run_directory != nullptr ? options_.run_directory->CheckInUse() : absl::OkStatus();
}

absl::Status CheckpointStore::Save(int64_t iteration, const std::vector<CheckpointPart>& parts, bool replaces) {
  SSL_ASSIGN_OR_RETURN(bool saved, IsSaved(iteration));
  replaces = replaces && saved;
  if (replaces) {
    SSL_ASSIGN_OR_RETURN(saved, HoldsTheSame(iteration, parts));
  }
  // An error, or the end of another process, may have come between its new name and LATEST.
  const auto tidy_up = [&] {
    if (tidied_ != iteration) TidyUp(iteration);
    return absl::OkStatus();
  };
  if (saved) return OnRankZero(tidy_up, "tidying up checkpoints", communicator_);
  is_exchanged_ = false;
  const std::string temporary = StepDirectory(iteration) + kTemporarySuffix;
  const auto make = [&]() -> absl::Status {
    SSL_RETURN_IF_ERROR(CheckInUse());
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(temporary));
    const absl::Status in_use = CheckInUse();  // else the directory above may have been made anew
    if (!in_use.ok()) file_system_.RemoveAll(temporary).IgnoreError();
    return in_use;
  };
  SSL_RETURN_IF_ERROR(OnRankZero(make, "making a checkpoint directory", communicator_));

  absl::StatusOr<std::vector<ManifestEntry>> files;
  const auto write = [&] {
    files = WriteParts(temporary, parts);
    return files.status();
  };
  absl::Status status = AgreeOnWork(write, "writing a checkpoint", communicator_);
  if (status.ok()) status = Commit(iteration, temporary, *files, replaces);
  if (status.ok()) return status;
  // Best effort: what it cannot remove now, Open removes at the next start.
  const absl::Status in_use = CheckInUse();
  if (in_use.ok() && !is_exchanged_ && communicator_.rank() == 0) file_system_.RemoveAll(temporary).IgnoreError();
  return Annotate(in_use.ok() ? OfStorage(status) : in_use,
                  absl::StrCat("checkpoint ", StepDirectory(iteration), " not saved"));
}

absl::StatusOr<bool> CheckpointStore::IsSaved(int64_t iteration) {
  absl::StatusOr<bool> saved = false;
  const auto look = [&] {
    saved = LooksSaved(iteration);
    return saved.status();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(look, "looking for a checkpoint", communicator_));
  at::Tensor answer = at::full({1}, *saved ? 1 : 0, at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(answer, 0));
  return answer.item<int64_t>() == 1;
}

absl::StatusOr<bool> CheckpointStore::LooksSaved(int64_t iteration) const {
  SSL_RETURN_IF_ERROR(CheckInUse());
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, Iterations());
  if (!std::binary_search(iterations.begin(), iterations.end(), iteration)) return false;
  const absl::Status status = Verify(iteration).status();
  if (!IsDamage(status)) return status.ok() ? absl::StatusOr<bool>(true) : status;
  SSL_LOG(WARNING) << "damaged checkpoint is written anew: " << status.message();
  return false;
}

absl::StatusOr<std::vector<ManifestEntry>> CheckpointStore::WriteParts(const std::string& directory,
                                                                       const std::vector<CheckpointPart>& parts) {
  std::vector<ManifestEntry> files;
  for (const CheckpointPart& part : parts) {
    SSL_RET_CHECK(part.file.size() <= kMaxFileName, absl::StrCat("file name is too long: ", part.file));
    SSL_ASSIGN_OR_RETURN(const FileDigest digest,
                         WriteSafetensors(file_system_, absl::StrCat(directory, "/", part.file), part.tensors, {}));
    files.push_back({part.file, digest.size, digest.crc32c});
  }
  const std::string& json = options_.config_json;
  if (communicator_.rank() != 0 || json.empty()) return files;
  SSL_RETURN_IF_ERROR(WriteFileDurably(file_system_, absl::StrCat(directory, "/", kConfigFile), json));
  files.push_back({kConfigFile, static_cast<int64_t>(json.size()), Crc32c(json)});
  return files;
}

absl::Status CheckpointStore::Commit(int64_t iteration, const std::string& temporary,
                                     const std::vector<ManifestEntry>& own_files, bool replaces) {
  SSL_ASSIGN_OR_RETURN(const Manifest manifest, GatherManifest(iteration, own_files));
  const auto publish = [&] {
    absl::Status status = replaces ? Replace(iteration, temporary, manifest) : Publish(iteration, temporary, manifest);
    if (status.ok()) TidyUp(iteration);
    return status;
  };
  return OnRankZero(publish, "committing a checkpoint", communicator_);
}

absl::StatusOr<Manifest> CheckpointStore::GatherManifest(int64_t iteration,
                                                         const std::vector<ManifestEntry>& own_files) {
  // Rank 0 writes more files than the others: pad all to the same number of rows.
  at::Tensor most = at::full({1}, static_cast<int64_t>(own_files.size()), at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.AllReduce(most, ReduceOp::kMax));
  SSL_ASSIGN_OR_RETURN(const at::Tensor rows, communicator_.AllGather(RowsFromFiles(own_files, most.item<int64_t>())));
  Manifest manifest;
  manifest.iteration = iteration;
  manifest.world_size = communicator_.size();
  manifest.config_hash = options_.config_hash;
  manifest.files = FilesFromRows(rows.flatten(0, 1));
  return manifest;
}

absl::Status CheckpointStore::Publish(int64_t iteration, const std::string& temporary, const Manifest& manifest) {
  SSL_RETURN_IF_ERROR(WriteManifest(temporary, manifest));
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, Iterations());
  const bool has_damaged = std::binary_search(iterations.begin(), iterations.end(), iteration);
  if (has_damaged) SSL_RETURN_IF_ERROR(SetAside(iteration));
  SSL_RETURN_IF_ERROR(file_system_.Rename(temporary, StepDirectory(iteration)));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(options_.directory));
  // Read back before anything older goes.
  return Verify(iteration).status();
}

absl::Status CheckpointStore::WriteManifest(const std::string& temporary, const Manifest& manifest) {
  SSL_RETURN_IF_ERROR(CheckInUse());
  SSL_RETURN_IF_ERROR(
      WriteFileDurably(file_system_, absl::StrCat(temporary, "/", kManifestName), ManifestToJson(manifest)));
  return file_system_.SyncDirectory(temporary);
}

// `newest` is saved, whatever fails here: an error would say that it is not. What is tried again was told before.
void CheckpointStore::TidyUp(int64_t newest) {
  intact_.insert(newest);
  absl::Status status = WriteNote(kLatestName, absl::StrCat(StepName(newest), "\n"));
  status.Update(RemoveOld(newest));
  status.Update(RemoveRenamed(newest));
  const bool is_told = untidy_ == newest;
  tidied_ = status.ok() ? newest : -1;
  untidy_ = status.ok() ? -1 : newest;
  if (status.ok() || is_told) return;
  SSL_LOG(WARNING) << StepDirectory(newest)
                   << " is saved; tidying up after it failed, and the next save tries again: " << status.message();
}

void CheckpointStore::TidyUpAgain() {
  if (untidy_ >= 0 && CheckInUse().ok()) TidyUp(untidy_);
}

absl::Status CheckpointStore::WriteNote(const char* file, const std::string& text) {
  return WriteFileAtomically(file_system_, absl::StrCat(options_.directory, "/", file), text);
}

absl::Status CheckpointStore::MarkFinished(int64_t iteration, absl::string_view why_early) {
  SSL_RETURN_IF_ERROR(CheckInUse());
  return WriteNote(kFinishedName, absl::StrCat(StepName(iteration), "\n", why_early, why_early.empty() ? "" : "\n"));
}

absl::Status CheckpointStore::SetName(const std::string& name, int64_t iteration, bool replaceable) {
  SSL_RETURN_IF_ERROR(CheckInUse());
  SSL_ASSIGN_OR_RETURN(const CheckpointNames::Nameless nameless, names_.Move(name, iteration, replaceable));
  if (nameless.iteration < 0 || !file_system_.Exists(StepDirectory(nameless.iteration))) return absl::OkStatus();
  if (nameless.replaceable) SSL_RETURN_IF_ERROR(Remove(nameless.iteration));
  if (tidied_ == iteration) TidyUp(iteration);  // the nameless one counts among the newest
  return absl::OkStatus();
}

absl::Status CheckpointStore::Keep(int64_t iteration) {
  SSL_ASSIGN_OR_RETURN(const bool is_replaceable, IsReplaceable(iteration));
  if (!is_replaceable) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(CheckInUse());
  return names_.Keep(iteration);
}

absl::Status CheckpointStore::DropFinished() {
  SSL_RETURN_IF_ERROR(CheckInUse());
  return file_system_.RemoveAll(absl::StrCat(options_.directory, "/", kFinishedName));
}

absl::Status CheckpointStore::SetAside(int64_t iteration) {
  const absl::Status status = Verify(iteration).status();
  if (!status.ok() && !IsDamage(status)) return status;
  const std::string target = absl::StrCat(StepDirectory(iteration), status.ok() ? kSetAsideSuffix : kDamagedSuffix);
  SSL_RETURN_IF_ERROR(file_system_.RemoveAll(target));
  SSL_RETURN_IF_ERROR(file_system_.Rename(StepDirectory(iteration), target));
  intact_.erase(iteration);
  SSL_LOG(WARNING) << StepDirectory(iteration) << " is set aside as " << target
                   << (status.ok() ? "" : absl::StrCat(": ", status.message()));
  return absl::OkStatus();
}

absl::Status CheckpointStore::SetAsideAfter(int64_t iteration) {
  SSL_RETURN_IF_ERROR(CheckInUse());
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, Iterations());
  const auto first = std::upper_bound(iterations.begin(), iterations.end(), iteration);
  if (first == iterations.end()) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(DropFinished());
  SSL_RETURN_IF_ERROR(names_.DropAfter(iteration));
  for (auto later = first; later != iterations.end(); ++later) SSL_RETURN_IF_ERROR(SetAside(*later));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(options_.directory));
  return WriteNote(kLatestName, absl::StrCat(StepName(iteration), "\n"));
}

absl::Status CheckpointStore::RemoveAll() {
  SSL_RETURN_IF_ERROR(CheckInUse());
  intact_.clear();
  return file_system_.RemoveAll(options_.directory);
}

// By way of a name that no reader takes for a checkpoint, so that a crash cannot leave half of one.
absl::Status CheckpointStore::Remove(int64_t iteration) {
  const std::string doomed = absl::StrCat(StepDirectory(iteration), kTemporarySuffix);
  SSL_RETURN_IF_ERROR(file_system_.RemoveAll(doomed));
  SSL_RETURN_IF_ERROR(file_system_.Rename(StepDirectory(iteration), doomed));
  intact_.erase(iteration);
  return file_system_.RemoveAll(doomed);
}

// `newest` has verified. A damaged checkpoint does not count as kept, nor does one with a name: only what lies behind
// keep_last other good ones goes.
absl::Status CheckpointStore::RemoveOld(int64_t newest) {
  if (options_.keep_last <= 0) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(std::vector<int64_t> iterations, Iterations());
  SSL_ASSIGN_OR_RETURN(const std::set<int64_t> named, names_.Iterations());
  int64_t kept = 1;
  for (auto iteration = iterations.rbegin(); iteration != iterations.rend(); ++iteration) {
    if (*iteration >= newest || named.count(*iteration) > 0) continue;
    if (kept == options_.keep_last) {
      SSL_RETURN_IF_ERROR(Remove(*iteration));
    } else if (intact_.count(*iteration) > 0 || Verify(*iteration).ok()) {
      intact_.insert(*iteration);
      ++kept;
    }
  }
  return absl::OkStatus();
}

// What has another name than a checkpoint: set aside, damaged, or left over by a removal that failed half-way.
absl::Status CheckpointStore::RemoveRenamed(int64_t newest) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(options_.directory));
  for (const std::string& name : names) {
    absl::string_view step = name;
    if (!absl::ConsumeSuffix(&step, kDamagedSuffix) && !absl::ConsumeSuffix(&step, kSetAsideSuffix) &&
        !absl::ConsumeSuffix(&step, kTemporarySuffix)) {
      continue;
    }
    const int64_t iteration = IterationOf(step);
    if (iteration < 0 || iteration > newest) continue;
    SSL_RETURN_IF_ERROR(file_system_.RemoveAll(absl::StrCat(options_.directory, "/", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> CheckpointStore::Iterations() const {
  const absl::StatusOr<std::vector<std::string>> names = file_system_.List(options_.directory);
  if (absl::IsNotFound(names.status())) return std::vector<int64_t>();
  SSL_RETURN_IF_ERROR(names.status());
  std::vector<int64_t> iterations;
  for (const std::string& name : *names) {
    const int64_t iteration = IterationOf(name);
    if (iteration >= 0) iterations.push_back(iteration);
  }
  std::sort(iterations.begin(), iterations.end());
  return iterations;
}

absl::StatusOr<Manifest> CheckpointStore::ReadManifest(int64_t iteration) const {
  const std::string path = absl::StrCat(StepDirectory(iteration), "/", kManifestName);
  const absl::StatusOr<std::string> json = file_system_.Read(path);
  if (absl::IsFailedPrecondition(json.status())) {  // a file has the directory's name, or a directory the manifest's
    return absl::DataLossError(absl::StrCat(StepDirectory(iteration), ": is no checkpoint: ", json.status().message()));
  }
  SSL_RETURN_IF_ERROR(json.status());
  SSL_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(*json, path));
  if (manifest.iteration != iteration) {
    return absl::DataLossError(absl::StrCat("manifest ", path, ": iteration is ", manifest.iteration, ", expected ",
                                            iteration, ": the directory was renamed"));
  }
  return manifest;
}

absl::StatusOr<Manifest> CheckpointStore::Verify(int64_t iteration) const {
  return VerifyDirectory(file_system_, StepDirectory(iteration), [&] { return ReadManifest(iteration); });
}

absl::StatusOr<std::vector<NamedTensor>> CheckpointStore::Load(int64_t iteration, const std::string& file) const {
  const std::string path = absl::StrCat(StepDirectory(iteration), "/", file);
  if (options_.run_directory != nullptr) return MapSafetensors(file_system_, path);
  SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(file_system_, path));
  return std::move(content.tensors);
}

absl::StatusOr<std::string> CheckpointStore::ReadConfig(int64_t iteration) const {
  const absl::StatusOr<std::string> text = file_system_.Read(absl::StrCat(StepDirectory(iteration), "/", kConfigFile));
  return absl::IsNotFound(text.status()) ? absl::StatusOr<std::string>("") : text;
}

}  // namespace ssl
