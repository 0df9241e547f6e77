// SPDX-License-Identifier: Apache-2.0
//
// Whether the run that lies in a directory lets a start with these settings go on, or begin.
#ifndef SSL_TOOLS_ADMISSION_H_
#define SSL_TOOLS_ADMISSION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Refuses what CheckWholeResume (ssl/core/start_refusal.h) refuses the resolved `config` for in a world of `ranks`.
// What is wrong with the checkpoints themselves, or their place, is for the training to find, and for its
// report of failure. Rank 0 of `processes` looks, which may take long: the newest checkpoint is read whole. Collective.
absl::Status CheckAdmission(const ConfigNode& config, const Registries& registries, int64_t ranks,
                            FileSystem& file_system, Communicator& processes);

}  // namespace ssl

#endif  // SSL_TOOLS_ADMISSION_H_
