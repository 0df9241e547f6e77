// SPDX-License-Identifier: Apache-2.0
//
// Saves and restores a run: splits rank 0's state by its outermost scope into the files of a checkpoint. Any number of
// ranks restores what any number has saved (rank_state.h).
//
//   model/...      -> model.safetensors
//   optimizer/...  -> optimizer.safetensors
//   all the rest   -> state_rank0.safetensors     counters, generators, method, hooks
//
// The file state_rank<r>.safetensors of another rank holds, under their whole names, what is not rank 0's there
// (rank_state.h).
//
// In the background, a save copies the state and returns; a thread writes the copy while training goes on. At most one
// save is in flight: the next one waits for it.
#ifndef SSL_CORE_CHECKPOINTER_H_
#define SSL_CORE_CHECKPOINTER_H_

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/background_task.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/model.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"

namespace ssl {

inline constexpr char kModelFile[] = "model.safetensors";

struct CheckpointerOptions {
  CheckpointStoreOptions store;
  int64_t num_phases = 0;  // of the whole run
  bool in_background = false;
  // Null, or the model whose shards are saved whole (sharded_state.h).
  Model* model = nullptr;
  // Null, or what else a restore does to the state, before other checkpoints are touched. Its error ends the restore.
  std::function<absl::Status()> after_restore = nullptr;
};

// Used by the training thread. All calls are collective, unless they say otherwise.
class Checkpointer : public CheckpointSaver {
 public:
  // `root` is walked at each save; `state` tells where the run stands. References outlive the checkpointer.
  static absl::StatusOr<std::unique_ptr<Checkpointer>> Make(CheckpointerOptions options, FileSystem& file_system,
                                                            Communicator& communicator, Stateful& root,
                                                            const TrainState& state);

  // What to do with the checkpoints that are there; MakeResumePlan on rank 0, which logs what it noticed.
  absl::StatusOr<ResumePlan> Plan(const CheckpointOptions& options, const RunIdentity& identity);

  // Removes all checkpoints.
  absl::Status RemoveAll();

  // Makes the directory and removes what interrupted saves left behind.
  absl::Status Open() { return store_.Open(); }

  // Restores the checkpoint of `iteration` and sets newer ones aside. InvalidArgument when it lies behind the end of
  // this run, DataLoss when it does not hold what it says.
  absl::Status Restore(int64_t iteration);

  // OutOfRange when the state holds infinities or NaN: such a state is never saved.
  absl::Status Save() override;
  absl::Status Poll() override;
  absl::Status Wait() override;
  absl::Status SaveAs(const std::string& name, bool replaceable) override;
  absl::StatusOr<int64_t> Named(const std::string& name) override;
  absl::StatusOr<bool> NameSaved(const std::string& name, int64_t iteration) override;

  // Notes that nothing is left to do after the newest checkpoint, which is on disk: for a run that ends before its last
  // phase, and why it does. The save of a run that has done all its phases notes it itself.
  absl::Status MarkFinished(const std::string& why_early);

  // Returns when a save that has begun has ended, one way or the other. Not collective: for a run that has failed.
  void LetEnd();

  // The iteration of the newest checkpoint that this process restored or has on disk; -1 for none. From any thread.
  int64_t last_saved() const { return last_saved_; }

 private:
  Checkpointer(CheckpointerOptions options, FileSystem& file_system, std::unique_ptr<Communicator> own,
               Communicator& communicator, Stateful& root, const TrainState& state);

  // What is saved: of this rank, and on rank 0 what the ranks have shared out, put together.
  struct SavedState {
    std::vector<NamedTensor> own;
    std::vector<NamedTensor> whole;
  };

  // A save that is asked for. The same once more costs nothing.
  struct Asked {
    int64_t iteration = -1;
    bool finished = false;
    bool within_phase = false;
    // Whether a checkpoint of this iteration that is there may be of an earlier moment, from within a phase whose end,
    // or whose owed work, hooks have heard since.
    bool replaces = false;
  };
  bool IsAskedFor(const Asked& asked) const;

  // Saves the state of this moment, whoever asks for it.
  absl::Status SaveState();
  // Notes that the checkpoint of this iteration, saved or not yet, stays when a name moves on.
  absl::Status Keep();
  // What rank 0 answers, on every rank.
  absl::StatusOr<int64_t> AskRankZero(const std::string& what,
                                      const std::function<absl::StatusOr<int64_t>()>& question);
  // Replaces the run's tensors by copies.
  void Stage(std::vector<NamedTensor>* state);
  bool IsWithinPhase() const { return state_.phase_index >= 0 && state_.phase_ended == 0; }
  absl::Status StartWriting(const Asked& asked, SavedState state);
  // LibTorch's exceptions become a Status. One of them may come between two operations: where there are other ranks, it
  // ends saving for good, and later saves return it.
  absl::Status WriteGuarded(const Asked& asked, const SavedState& state);
  absl::Status Write(const Asked& asked, const SavedState& state);
  absl::Status FinishTask();
  absl::Status WaitForTask();
  absl::StatusOr<std::vector<NamedTensor>> LoadOfRank(int64_t iteration, int64_t rank) const;
  // What this rank restores. Collective.
  absl::StatusOr<std::vector<NamedTensor>> Load(int64_t iteration);
  // Restores this rank's state.
  absl::Status TakeLoaded(int64_t iteration, const absl::StatusOr<std::vector<NamedTensor>>& loaded);
  absl::Status CheckLoaded(const std::vector<NamedTensor>& state, int64_t iteration) const;

  const CheckpointerOptions options_;
  // The writing thread's: its operations do not meet those of training.
  const std::unique_ptr<Communicator> own_communicator_;
  CheckpointStore store_;
  Communicator& communicator_;
  Stateful& root_;
  const TrainState& state_;
  std::atomic<int64_t> last_saved_{-1};
  Asked asked_;  // last
  // The iteration of the last checkpoint, restored or saved, when it is from within a phase; -1 otherwise.
  int64_t within_phase_ = -1;
  // The last checkpoints that are known to stay when a name moves on, and to go then.
  int64_t kept_iteration_ = -1;
  int64_t replaceable_iteration_ = -1;
  // The copies of the last save, whose memory the next one uses. By name.
  std::unordered_map<std::string, at::Tensor> staged_;
  BackgroundTask task_;  // last: its thread uses the members above
};

// Loads only the model of a run's newest valid checkpoint, for evaluation, also while that run goes on. Returns that
// checkpoint's iteration; NotFound when there was none from the beginning. Collective.
absl::StatusOr<int64_t> RestoreModel(const std::string& checkpoint_directory, FileSystem& file_system,
                                     Communicator& communicator, Stateful& model);

}  // namespace ssl

#endif  // SSL_CORE_CHECKPOINTER_H_
