// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on disk: directories `step_<iteration>/` of safetensors files, the run's settings (config.json) and a
// MANIFEST.json that holds the size and CRC-32C of each.
//
//   save:  step_N.tmp/ (all ranks write their files, synced) -> MANIFEST.json -> rename to step_N/ -> sync
//          -> read back and verify: saved -> LATEST, remove what is too old
//   again: step_N.tmp/ as above -> read back and verify -> exchange it with step_N/, in one step -> remove the old one
//   load:  the newest step_N/ whose files all match its manifest; damaged ones are named in a warning and passed over
//
// A name without a suffix always stands for a checkpoint that was complete once, also after a crash at any point.
// A name of its own (checkpoint_names.h) keeps a checkpoint, such as the best one, beside the newest `keep_last`.
// LATEST is for people and scripts; loading does not trust it. A checkpoint that is not to be used any more is renamed,
// not removed: step_N.damaged (it does not verify) or step_N.set_aside (the run went back behind it). Both go when a
// checkpoint of that iteration or a later one has been saved.
#ifndef SSL_CORE_CHECKPOINT_STORE_H_
#define SSL_CORE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/checkpoint_names.h"
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
  int64_t keep_last = 2;    // complete checkpoints to keep beside those with a name; 0 keeps all
  std::string config_hash;  // recorded in the manifest
  // Asked before each save whether the place is still ours; null when the store only reads. Outlives the store.
  const RunDirectory* run_directory = nullptr;
  std::string config_json = {};  // written beside the parts; "" for none
};

inline constexpr char kConfigFile[] = "config.json";

// Where a run keeps its checkpoints: <run directory>/checkpoints.
std::string CheckpointDirectory(absl::string_view run_directory);

// Whether a checkpoint with this outcome of Verify or FindNewestValid is damaged. Anything else, such as a missing
// permission or a disk that fails to read, tells nothing about the bytes: taking it for damage would throw good work
// away.
bool IsDamage(const absl::Status& status);

// Calls marked collective are made by all ranks; the others read, and any rank may make them alone.
class CheckpointStore {
 public:
  // Both references outlive the store.
  CheckpointStore(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator);

  // Makes the directory and removes what interrupted saves left behind. Collective.
  absl::Status Open();

  // Saves this rank's `parts`; every rank passes the same number of parts, with file names that differ between
  // ranks. OK without writing it when step_<iteration> exists and is intact; a damaged one is replaced. `replaces`: an
  // intact one, too, unless it holds the same tensors, and unless the file system cannot do it in one step. After a
  // failure the previous checkpoints are untouched, and of the new one either nothing is left or all of it. What fails
  // once the checkpoint is saved (LATEST, removing old ones) is logged, and done by the next save or TidyUpAgain.
  // Collective.
  absl::Status Save(int64_t iteration, const std::vector<CheckpointPart>& parts, bool replaces = false);

  // Tries once more what failed after the last save: no other save may follow it. Does nothing on other ranks than 0.
  void TidyUpAgain();

  // Notes that nothing is left to do after this checkpoint, and why when the run has ended early. Rank 0.
  absl::Status MarkFinished(int64_t iteration, absl::string_view why_early = "");

  // Gives `name` to a checkpoint that is there. The one that had it loses it, and goes if it was `replaceable` and has
  // no other name. A crash leaves the name with one of the two, and both of them there until it has moved. Rank 0.
  absl::Status SetName(const std::string& name, int64_t iteration, bool replaceable);
  // Whether a name holds the checkpoint as replaceable; Keep makes it one that stays. Rank 0.
  absl::StatusOr<bool> IsReplaceable(int64_t iteration) const { return names_.IsReplaceable(iteration); }
  absl::Status Keep(int64_t iteration);
  absl::Status DropName(const std::string& name) { return names_.Drop(name); }
  // Iterations by name; DataLoss for a file that names none.
  absl::StatusOr<std::map<std::string, int64_t>> Names() const { return names_.All(); }

  // Takes that note back: the run goes on. Rank 0.
  absl::Status DropFinished();

  // Iterations of all checkpoints, valid or not, oldest first; none when the directory is missing.
  absl::StatusOr<std::vector<int64_t>> Iterations() const;

  // The iteration of the newest checkpoint that verifies; NotFound when there is none at all; DataLoss, listing what
  // is wrong with each, when there are checkpoints but none verifies. Any other error, such as a missing permission,
  // ends the search: it says nothing about the checkpoint. The search begins anew when a run beside this process has
  // saved and removed checkpoints meanwhile; FailedPrecondition when all are gone then. `passed_over`, where it is not
  // null, tells what is wrong with newer ones; "" for nothing.
  absl::StatusOr<int64_t> FindNewestValid(std::string* passed_over = nullptr) const;
  // The same, searched by rank 0 for all; what was passed over is logged. Collective.
  absl::StatusOr<int64_t> NewestValid();

  // NewestValid, then `read` on all ranks, which says NotFound for files that are not there: then both are done again,
  // because a run beside this process may have removed them. DataLoss when they are missing in a checkpoint that is
  // there. Returns the iteration of what was read. Collective.
  absl::StatusOr<int64_t> ReadNewest(absl::FunctionRef<absl::Status(int64_t iteration)> read);

  // What step_<iteration> says of itself; its files are not looked at. DataLoss or NotFound, naming the manifest.
  absl::StatusOr<Manifest> ReadManifest(int64_t iteration) const;

  // The same, after reading every file: DataLoss or NotFound, naming the file, when it is not what was saved.
  absl::StatusOr<Manifest> Verify(int64_t iteration) const;

  // Renames every checkpoint after `iteration`, so that the run can go on from there. Rank 0.
  absl::Status SetAsideAfter(int64_t iteration);

  // Removes everything. Rank 0.
  absl::Status RemoveAll();

  // step_<iteration>/<file> of a checkpoint that verified, to be read only. With a run directory, whose lock keeps
  // others off, in place: tensors over the mapped file (ssl/io/mapped_tensor.h). Else as a copy: on a network file
  // system, pages of a file that another host removes end the process that touches them.
  absl::StatusOr<std::vector<NamedTensor>> Load(int64_t iteration, const std::string& file) const;
  // "" when the checkpoint has none: it is from before settings were recorded.
  absl::StatusOr<std::string> ReadConfig(int64_t iteration) const;

  std::string StepDirectory(int64_t iteration) const;

 private:
  absl::Status CheckInUse() const;
  absl::StatusOr<int64_t> NewestValidOf(const std::vector<int64_t>& iterations, std::string* problems) const;
  absl::Status RemovedWhileRead() const;
  absl::StatusOr<bool> IsSaved(int64_t iteration);
  absl::StatusOr<bool> LooksSaved(int64_t iteration) const;
  // Whether the intact checkpoint holds these tensors, on all ranks.
  absl::StatusOr<bool> HoldsTheSame(int64_t iteration, const std::vector<CheckpointPart>& parts);
  absl::StatusOr<std::vector<ManifestEntry>> WriteParts(const std::string& directory,
                                                        const std::vector<CheckpointPart>& parts);
  absl::Status Commit(int64_t iteration, const std::string& temporary, const std::vector<ManifestEntry>& own_files,
                      bool replaces);
  absl::StatusOr<Manifest> GatherManifest(int64_t iteration, const std::vector<ManifestEntry>& own_files);
  absl::Status Publish(int64_t iteration, const std::string& temporary, const Manifest& manifest);
  // The same in place of an intact one.
  absl::Status Replace(int64_t iteration, const std::string& temporary, const Manifest& manifest);
  absl::Status WriteManifest(const std::string& temporary, const Manifest& manifest);
  void TidyUp(int64_t newest);
  absl::Status WriteNote(const char* file, const std::string& text);
  absl::Status SetAside(int64_t iteration);
  absl::Status Remove(int64_t iteration);
  absl::Status RemoveOld(int64_t newest);
  absl::Status RemoveRenamed(int64_t newest);

  const CheckpointStoreOptions options_;
  FileSystem& file_system_;
  Communicator& communicator_;
  CheckpointNames names_;
  // Which this object has verified since it, or another process, wrote them: under the run's lock they stay so. Rank 0.
  std::set<int64_t> intact_;
  // The last saved iteration, by whether tidying up after it worked or failed; the other is -1. Rank 0.
  int64_t tidied_ = -1;
  // On rank 0: the last save has exchanged two checkpoints. Until that is durable, either may be the one that is left.
  bool is_exchanged_ = false;
  int64_t untidy_ = -1;
};

}  // namespace ssl

#endif  // SSL_CORE_CHECKPOINT_STORE_H_
