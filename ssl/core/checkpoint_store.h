// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on disk: directories `step_<iteration>/` of safetensors files and a MANIFEST.json that holds the size
// and CRC-32C of each.
//
//   save:  step_N.tmp/ (all ranks write their files, synced) -> MANIFEST.json -> rename to step_N/ -> sync -> LATEST
//   load:  the newest step_N/ whose files all match its manifest; damaged ones are named in a warning and passed over
//
// A name without ".tmp" therefore always stands for a complete checkpoint, also after a crash at any point. LATEST is
// for people and scripts; loading does not trust it. The previous checkpoint goes only after the new one was read
// back and verified.
#ifndef SSL_CORE_CHECKPOINT_STORE_H_
#define SSL_CORE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/run_directory.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/manifest.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// One file of a checkpoint.
struct CheckpointPart {
  std::string file;  // "model.safetensors"
  std::vector<NamedTensor> tensors;
};

struct CheckpointStoreOptions {
  std::string directory;    // <run directory>/checkpoints
  int64_t keep_last = 2;    // complete checkpoints to keep; 0 keeps all
  std::string config_hash;  // recorded in the manifest
  // Asked before each save whether the place is still ours; null when the store only reads. Outlives the store.
  const RunDirectory* run_directory = nullptr;
};

class CheckpointStore {
 public:
  // Both references outlive the store.
  CheckpointStore(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator);

  // Makes the directory and removes what interrupted saves left behind. Collective.
  absl::Status Open();

  // Saves this rank's `parts`; every rank passes the same number of parts, with file names that differ between
  // ranks. OK when step_<iteration> exists already. After a failure no part of the new checkpoint is left, and the
  // previous ones are untouched. Collective.
  absl::Status Save(int64_t iteration, const std::vector<CheckpointPart>& parts);

  // Whether there is a checkpoint, valid or not. Collective.
  absl::StatusOr<bool> HasCheckpoints();

  // The iteration of the newest checkpoint that verifies; NotFound when there is none at all; DataLoss, listing what
  // is wrong with each, when there are checkpoints but none verifies. Collective.
  absl::StatusOr<int64_t> NewestValid();

  // step_<iteration>/<file> of a checkpoint that NewestValid returned.
  absl::StatusOr<std::vector<NamedTensor>> Load(int64_t iteration, const std::string& file) const;

  std::string StepDirectory(int64_t iteration) const;

 private:
  absl::Status CheckInUse() const;
  absl::StatusOr<std::vector<ManifestEntry>> WriteParts(const std::string& directory,
                                                        const std::vector<CheckpointPart>& parts);
  absl::Status Commit(int64_t iteration, const std::string& temporary, const std::vector<ManifestEntry>& own_files);
  absl::StatusOr<Manifest> GatherManifest(int64_t iteration, const std::vector<ManifestEntry>& own_files);
  absl::Status Publish(int64_t iteration, const std::string& temporary, const Manifest& manifest);
  absl::Status RemoveOld(int64_t newest);
  absl::StatusOr<std::vector<int64_t>> Iterations() const;
  absl::Status Verify(int64_t iteration) const;
  absl::StatusOr<int64_t> FindNewestValid() const;

  const CheckpointStoreOptions options_;
  FileSystem& file_system_;
  Communicator& communicator_;
};

}  // namespace ssl

#endif  // SSL_CORE_CHECKPOINT_STORE_H_
