// SPDX-License-Identifier: Apache-2.0
//
// Whole training runs from a configuration, with the program's own parts. Ranks are threads.
//
//   TrainingRun run;
//   run.ranks = 2;
//   run.config = {"LOSS: {name: swav_loss}", ...};
//   ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> traces, Train(run));
#ifndef SSL_TESTING_TRAINING_RUNS_H_
#define SSL_TESTING_TRAINING_RUNS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct TrainingRun {
  int64_t ranks = 1;
  int64_t samples_per_update = 16;  // of all ranks
  // YAML, each over those before it; all over a base of 80 synthetic grey images, SGD with momentum and four epochs.
  // The number of ranks, their batch size and the directory are set here.
  std::vector<std::string> config = {};
  std::string directory = {};   // "" keeps no files
  int64_t last_iteration = -1;  // where it ends as if it was stopped; below 0: to its end
  // Ranks take turns (virtual_world.h), so that what each draws in training, for dropout or drop path, is its own.
  bool take_turns = false;
  // Parts beside the program's own.
  std::function<absl::Status(Registries*)> add_parts = nullptr;
  // Instead of the configuration's images.
  std::function<std::unique_ptr<BatchSource>(const Communicator&)> make_source = nullptr;
  // Before the start, to add hooks, for example.
  std::function<absl::Status(Session&, const Communicator&)> prepare = nullptr;
};

// What each step of a rank saw, from the one after `first_iteration` on.
struct RankTrace {
  int64_t first_iteration = 0;
  std::vector<double> losses;
  std::vector<std::set<int64_t>> images;  // their indices in the data set
};

// The program's methods, data, hooks and meters.
absl::Status RegisterProgramParts(Registries* registries);

// `texts` as TrainingRun::config has them, over the same base.
absl::StatusOr<ConfigNode> TrainingConfig(const std::vector<std::string>& texts);

// The error of the lowest rank that failed.
absl::StatusOr<std::vector<RankTrace>> Train(const TrainingRun& run);

// The mean over the ranks of each step's loss.
std::vector<double> MeanLosses(const std::vector<RankTrace>& ranks);

}  // namespace ssl

#endif  // SSL_TESTING_TRAINING_RUNS_H_
