// SPDX-License-Identifier: Apache-2.0
//
// What a run does with the checkpoints that it finds in its directory: decided before anything changes there.
// docs/checkpoints.md tells users the rules.
#ifndef SSL_CORE_RESUME_PLAN_H_
#define SSL_CORE_RESUME_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/core_options.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

class RunIdentity;

struct ResumePlan {
  int64_t iteration = -1;        // of the checkpoint to go on from; -1: the run starts from the beginning
  bool removes_earlier = false;  // what an earlier run left goes first
  // What a user should know of it, to be logged where the plan is carried out; "" and none on other ranks than 0.
  std::string warning = "";  // about damaged checkpoints
  std::vector<std::string> notes = {};
};

// Reads only, and logs nothing; rank 0 calls it for all. InvalidArgument, naming keys and ways out, when the
// checkpoints are another run's (other settings, more or fewer samples in an update over all ranks) or the settings
// forbid to use them (AUTO_RESUME=False); NotFound when RESUME_FROM names none; DataLoss when there are checkpoints and
// none that could be used is intact.
absl::StatusOr<ResumePlan> MakeResumePlan(const CheckpointOptions& options, const RunIdentity& identity,
                                          const CheckpointStore& store, int64_t world_size);

// What a session with this configuration (the tree of ResolveConfig) would do with the checkpoints, or be refused for,
// known before anything is built, opened or written: for a program that writes files of its own into the run directory.
// Numbers of samples are not known yet. Rank 0.
absl::StatusOr<ResumePlan> CheckResume(const ConfigNode& config, const OptionCatalog& catalog, FileSystem& file_system,
                                       Communicator& communicator);

}  // namespace ssl

#endif  // SSL_CORE_RESUME_PLAN_H_
