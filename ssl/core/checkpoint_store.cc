// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpoint_store.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/distributed/agree.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kStepPrefix[] = "step_";
constexpr char kTemporarySuffix[] = ".tmp";
constexpr char kManifestName[] = "MANIFEST.json";
constexpr char kLatestName[] = "LATEST";
// File names travel between ranks as fixed rows of bytes.
constexpr int64_t kMaxFileName = 128;

// "step_120" -> 120; -1 for any other name.
int64_t IterationOf(absl::string_view name) {
  int64_t iteration = -1;
  if (!absl::ConsumePrefix(&name, kStepPrefix) || !absl::SimpleAtoi(name, &iteration)) return -1;
  return iteration;
}

// [files, 2 + kMaxFileName] int64: size, CRC-32C, name.
at::Tensor EncodeFiles(const std::vector<ManifestEntry>& files) {
  at::Tensor rows = at::zeros({static_cast<int64_t>(files.size()), 2 + kMaxFileName}, at::kLong);
  int64_t* cell = rows.mutable_data_ptr<int64_t>();
  for (const ManifestEntry& entry : files) {
    cell[0] = entry.size;
    cell[1] = entry.crc32c;
    std::copy(entry.file.begin(), entry.file.end(), cell + 2);
    cell += 2 + kMaxFileName;
  }
  return rows;
}

std::vector<ManifestEntry> DecodeFiles(const at::Tensor& rows) {
  std::vector<ManifestEntry> files;
  const int64_t* cell = rows.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows.size(0); ++row, cell += 2 + kMaxFileName) {
    const int64_t* name = cell + 2;
    files.push_back(
        {std::string(name, std::find(name, name + kMaxFileName, 0)), cell[0], static_cast<uint32_t>(cell[1])});
  }
  return files;
}

}  // namespace

CheckpointStore::CheckpointStore(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator)
    : options_(std::move(options)), file_system_(file_system), communicator_(communicator) {}

std::string CheckpointStore::StepDirectory(int64_t iteration) const {
  return absl::StrCat(options_.directory, "/", kStepPrefix, iteration);
}

absl::Status CheckpointStore::Open() {
  const auto open = [this]() -> absl::Status {
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(options_.directory));
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(options_.directory));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, kStepPrefix) || !absl::EndsWith(name, kTemporarySuffix)) continue;
      SSL_RETURN_IF_ERROR(file_system_.RemoveAll(absl::StrCat(options_.directory, "/", name)));
    }
    return absl::OkStatus();
  };
  return AgreeOnStatus(communicator_.rank() == 0 ? open() : absl::OkStatus(), "opening the checkpoint directory",
                       communicator_);
}

// Else making the step's directory would make the whole run directory anew, unlocked, or write into another run's.
absl::Status CheckpointStore::CheckInUse() const {
  return options_.run_directory != nullptr ? options_.run_directory->CheckInUse() : absl::OkStatus();
}

absl::Status CheckpointStore::Save(int64_t iteration, const std::vector<CheckpointPart>& parts) {
  SSL_RETURN_IF_ERROR(AgreeOnStatus(CheckInUse(), "looking for the run directory", communicator_));
  if (file_system_.Exists(StepDirectory(iteration))) return communicator_.Barrier();
  const std::string temporary = StepDirectory(iteration) + kTemporarySuffix;
  absl::Status status;
  if (communicator_.rank() == 0) status = file_system_.CreateDirectories(temporary);
  SSL_RETURN_IF_ERROR(AgreeOnStatus(status, "making a checkpoint directory", communicator_));

  absl::StatusOr<std::vector<ManifestEntry>> files = WriteParts(temporary, parts);
  status = AgreeOnStatus(files.status(), "writing a checkpoint", communicator_);
  if (status.ok()) status = Commit(iteration, temporary, *files);
  // Best effort: what it cannot remove now, Open removes at the next start.
  if (!status.ok() && communicator_.rank() == 0) file_system_.RemoveAll(temporary).IgnoreError();
  return Annotate(status, absl::StrCat("checkpoint ", StepDirectory(iteration), " not saved"));
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
  return files;
}

absl::Status CheckpointStore::Commit(int64_t iteration, const std::string& temporary,
                                     const std::vector<ManifestEntry>& own_files) {
  SSL_ASSIGN_OR_RETURN(const Manifest manifest, GatherManifest(iteration, own_files));
  absl::Status status;
  if (communicator_.rank() == 0) {
    status = Publish(iteration, temporary, manifest);
    if (status.ok()) status = RemoveOld(iteration);
  }
  return AgreeOnStatus(status, "committing a checkpoint", communicator_);
}

absl::StatusOr<Manifest> CheckpointStore::GatherManifest(int64_t iteration,
                                                         const std::vector<ManifestEntry>& own_files) {
  // Rank 0 writes more files than the others: pad all to the same number of rows.
  at::Tensor most = at::full({1}, static_cast<int64_t>(own_files.size()), at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.AllReduce(most, ReduceOp::kMax));
  std::vector<ManifestEntry> padded = own_files;
  padded.resize(most.item<int64_t>());
  SSL_ASSIGN_OR_RETURN(const at::Tensor rows, communicator_.AllGather(EncodeFiles(padded)));
  Manifest manifest;
  manifest.iteration = iteration;
  manifest.world_size = communicator_.size();
  manifest.config_hash = options_.config_hash;
  manifest.files = DecodeFiles(rows.reshape({-1, 2 + kMaxFileName}));
  manifest.files.erase(std::remove_if(manifest.files.begin(), manifest.files.end(),
                                      [](const ManifestEntry& entry) { return entry.file.empty(); }),
                       manifest.files.end());
  return manifest;
}

absl::Status CheckpointStore::Publish(int64_t iteration, const std::string& temporary, const Manifest& manifest) {
  SSL_RETURN_IF_ERROR(CheckInUse());
  SSL_RETURN_IF_ERROR(
      WriteFileAtomically(file_system_, absl::StrCat(temporary, "/", kManifestName), ManifestToJson(manifest)));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(temporary));
  SSL_RETURN_IF_ERROR(file_system_.Rename(temporary, StepDirectory(iteration)));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(options_.directory));
  return WriteFileAtomically(file_system_, absl::StrCat(options_.directory, "/", kLatestName),
                             absl::StrCat(kStepPrefix, iteration, "\n"));
}

absl::Status CheckpointStore::RemoveOld(int64_t newest) {
  if (options_.keep_last <= 0) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(std::vector<int64_t> iterations, Iterations());
  if (static_cast<int64_t>(iterations.size()) <= options_.keep_last) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(Verify(newest));
  iterations.resize(iterations.size() - options_.keep_last);
  for (const int64_t iteration : iterations) SSL_RETURN_IF_ERROR(file_system_.RemoveAll(StepDirectory(iteration)));
  return absl::OkStatus();
}

// Sorted, oldest first.
absl::StatusOr<std::vector<int64_t>> CheckpointStore::Iterations() const {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(options_.directory));
  std::vector<int64_t> iterations;
  for (const std::string& name : names) {
    const int64_t iteration = IterationOf(name);
    if (iteration >= 0) iterations.push_back(iteration);
  }
  std::sort(iterations.begin(), iterations.end());
  return iterations;
}

absl::Status CheckpointStore::Verify(int64_t iteration) const {
  const std::string path = absl::StrCat(StepDirectory(iteration), "/", kManifestName);
  SSL_ASSIGN_OR_RETURN(const std::string json, file_system_.Read(path));
  SSL_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(json, path));
  return VerifyManifest(file_system_, StepDirectory(iteration), manifest);
}

absl::StatusOr<int64_t> CheckpointStore::FindNewestValid() const {
  if (!file_system_.Exists(options_.directory)) {
    return absl::NotFoundError(absl::StrCat(options_.directory, ": no checkpoint"));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, Iterations());
  if (iterations.empty()) return absl::NotFoundError(absl::StrCat(options_.directory, ": no checkpoint"));
  std::string problems;
  for (auto iteration = iterations.rbegin(); iteration != iterations.rend(); ++iteration) {
    const absl::Status status = Verify(*iteration);
    if (status.ok()) {
      if (!problems.empty()) {
        SSL_LOG(WARNING) << "damaged checkpoint passed over: " << problems << "; using " << StepDirectory(*iteration);
      }
      return *iteration;
    }
    absl::StrAppend(&problems, problems.empty() ? "" : "; ", status.message());
  }
  return absl::DataLossError(absl::StrCat(options_.directory, ": no checkpoint is intact: ", problems,
                                          "; remove the directory to start anew"));
}

absl::StatusOr<bool> CheckpointStore::HasCheckpoints() {
  absl::StatusOr<std::vector<int64_t>> iterations = std::vector<int64_t>();
  if (communicator_.rank() == 0 && file_system_.Exists(options_.directory)) iterations = Iterations();
  SSL_RETURN_IF_ERROR(AgreeOnStatus(iterations.status(), "looking for a checkpoint", communicator_));
  at::Tensor count = at::full({1}, static_cast<int64_t>(iterations->size()), at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(count, 0));
  return count.item<int64_t>() > 0;
}

absl::StatusOr<int64_t> CheckpointStore::NewestValid() {
  absl::StatusOr<int64_t> newest = communicator_.rank() == 0 ? FindNewestValid() : absl::StatusOr<int64_t>(0);
  const bool none = newest.status().code() == absl::StatusCode::kNotFound;
  SSL_RETURN_IF_ERROR(
      AgreeOnStatus(none ? absl::OkStatus() : newest.status(), "looking for a checkpoint", communicator_));
  at::Tensor iteration = at::full({1}, newest.ok() ? *newest : -1, at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(iteration, 0));
  if (iteration.item<int64_t>() < 0) return absl::NotFoundError(absl::StrCat(options_.directory, ": no checkpoint"));
  return iteration.item<int64_t>();
}

absl::StatusOr<std::vector<NamedTensor>> CheckpointStore::Load(int64_t iteration, const std::string& file) const {
  SSL_ASSIGN_OR_RETURN(SafetensorsContent content, ReadSafetensors(absl::StrCat(StepDirectory(iteration), "/", file)));
  return std::move(content.tensors);
}

}  // namespace ssl
