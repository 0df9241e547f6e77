// SPDX-License-Identifier: Apache-2.0
//
// The identity of a run (run_identity.h) whose parts are built, so that its data and its network are known.
#ifndef SSL_CORE_TASK_IDENTITY_H_
#define SSL_CORE_TASK_IDENTITY_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/core_options.h"
#include "ssl/core/model.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Checkpoints record this of a run, and compare it with that of a run that goes on. References outlive it.
RunIdentity IdentityOf(const ConfigNode& config, const OptionCatalog& catalog, SelfSupervisionTask& task);

// For a preview: what the start would be refused for because of the run that lies in its directory. What the refusal
// would let differ has to fit: `model`, which never trains, takes the weights for it. Rank 0 looks. Collective.
absl::Status CheckGoesOn(RunIdentity identity, const CheckpointOptions& options, FileSystem& file_system,
                         Communicator& communicator, Model& model);

}  // namespace ssl

#endif  // SSL_CORE_TASK_IDENTITY_H_
