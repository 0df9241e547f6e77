// SPDX-License-Identifier: Apache-2.0
//
// A command that starts ranks of itself: --launch=local:N, and NUM_NODES and NUM_PROC_PER_NODE.
#ifndef SSL_TOOLS_LAUNCH_RANKS_H_
#define SSL_TOOLS_LAUNCH_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/tools/run_world.h"

namespace ssl {

// Starts this program with `arguments` once for each rank of `world` (ssl/launch/local_launcher.h), and waits for all.
// root: what they will compose, resolved. After a failure all start again up to `restarts` times, as long as the newest
// checkpoint moves. Returns the exit code; a failure leaves the report of launch_failure.h. Before anything of this
// process has started threads.
absl::StatusOr<int> LaunchRanks(const RunWorld& world, const ConfigNode& root,
                                const std::vector<std::string>& arguments, int64_t restarts);

}  // namespace ssl

#endif  // SSL_TOOLS_LAUNCH_RANKS_H_
