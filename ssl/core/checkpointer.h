// SPDX-License-Identifier: Apache-2.0
//
// Saves and restores a run: splits the state by its outermost scope into the files of a checkpoint.
//
//   model/...      -> model.safetensors           the same on all ranks: rank 0 writes
//   optimizer/...  -> optimizer.safetensors       likewise
//   all the rest   -> state_rank<r>.safetensors   counters, generators, method, hooks: each rank's own
#ifndef SSL_CORE_CHECKPOINTER_H_
#define SSL_CORE_CHECKPOINTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"

namespace ssl {

inline constexpr char kModelFile[] = "model.safetensors";

class Checkpointer : public CheckpointSaver {
 public:
  // `root` is walked at each save; `state` tells the iteration. References outlive the checkpointer.
  Checkpointer(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator, Stateful& root,
               const TrainState& state);

  absl::Status Open() { return store_.Open(); }

  absl::Status Save() override;

  // Whether there is a checkpoint, valid or not. Collective.
  absl::StatusOr<bool> HasCheckpoints() { return store_.HasCheckpoints(); }

  // Restores the newest valid checkpoint; false when there is none. Collective.
  absl::StatusOr<bool> RestoreNewest();

 private:
  CheckpointStore store_;
  Communicator& communicator_;
  Stateful& root_;
  const TrainState& state_;
};

// Loads only the model of a run's newest valid checkpoint, for evaluation. Returns that checkpoint's iteration.
absl::StatusOr<int64_t> RestoreModel(const std::string& checkpoint_directory, FileSystem& file_system,
                                     Communicator& communicator, Stateful& model);

}  // namespace ssl

#endif  // SSL_CORE_CHECKPOINTER_H_
