// SPDX-License-Identifier: Apache-2.0
//
// What ssl_main does once its command line is taken apart: compose the configuration, run the engines, keep the
// results. Prints results on the stream it is given; everything else goes through the log.
#ifndef SSL_TOOLS_COMMAND_H_
#define SSL_TOOLS_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/compose.h"
#include "ssl/config/node.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/registries.h"
#include "ssl/core/world_options.h"
#include "ssl/distributed/communicator.h"
#include "ssl/tools/run_world.h"

namespace ssl {

struct CommandLine {
  std::vector<std::string> tokens;       // config=..., +config/GROUP=..., config.A.B=value, engine_name=...
  std::vector<std::string> search_dirs;  // where configuration files are looked up
  std::string config_dir;                // the first of them, where a flag gives it; "" for none
  std::string run_files;                 // see RunFilesDirectory; "" for none, as in tests
  LaunchFlags launch;
};

// Everything that a configuration may name.
absl::Status FillRegistries(const CommandLine& line, Registries* registries);

// What is to be composed: defaults, tokens, search directories.
ComposeRequest MakeComposeRequest(const CommandLine& line, const Registries& registries);

// What the command line and its files say, before anything is filled in that follows from other settings.
struct Composition {
  ConfigNode root;                    // {engine_name, config}; the values are checked, the run directory is chosen
  std::vector<std::string> warnings;  // not logged yet
  std::string ranks_from = {};        // as for SetWorldShape
};

// An error logs the warnings: one of them may explain it.
absl::StatusOr<Composition> ComposeUnresolved(const CommandLine& line, const Registries& registries);

// The keys of DISTRIBUTED that the command itself reads.
absl::StatusOr<WorldOptions> ReadWorldOptions(const ConfigNode& root);

// Which ranks a start is, or starts: FindRunWorld for `root` and the environment of this process. InvalidArgument, too,
// where --launch and a key of DISTRIBUTED, both on the command line, ask for different ranks, and where ranks that are
// started again are not to go on (CHECKPOINT.AUTO_RESUME).
absl::StatusOr<RunWorld> FindWorld(const ConfigNode& root, const LaunchFlags& flags);

// The keys of DISTRIBUTED on the command line that say where ranks meet, or how many there are, other than the launcher
// does that has started this rank; "" for none, and for ranks of our launcher, which follows them.
std::string OverruledWarning(const ConfigNode& root, const RunWorld& world);

// Who says how many ranks there are where the keys say something else, for messages: "command line: --launch=local:2".
std::string RanksFrom(const LaunchFlags& flags);

// Makes NUM_NODES and NUM_PROC_PER_NODE those of `world`. from: where values stand that were others before.
void SetWorldShape(const WorldShape& world, const std::string& from, ConfigNode* root);

// The composed root tree: {engine_name, config}; the tree under config is resolved, and its values are checked.
// world: the ranks that run, on which learning rates and other settings depend; none: those that DISTRIBUTED names.
// Warnings go to the log, and to `warnings` for that of the run, which is not open yet; null: nobody asks.
absl::StatusOr<ConfigNode> ResolveRoot(Composition composition, const std::optional<WorldShape>& world,
                                       const Registries& registries, std::vector<std::string>* warnings = nullptr);

// Both, of the ranks that DISTRIBUTED names.
absl::StatusOr<ConfigNode> ComposeRoot(const CommandLine& line, const Registries& registries,
                                       std::vector<std::string>* warnings = nullptr);

// What a training with `root` would be refused for because of what its run directory holds, and an estimate of its time
// as well; OK when nothing is meant to train. Builds the run where it would go on. Reads only.
absl::Status CheckStart(const ConfigNode& root, const Registries& registries);

// Runs the engines of `root` in the run directory (run_record.h) on the ranks of this process (rank_engines.h); true
// when all work is done, false when it was stopped. An error leaves a failure report there (failure_report.h).
// communicator: of the processes. warnings: of ResolveRoot. Rank 0 prints what engines report. Collective.
absl::StatusOr<bool> RunEngines(const ConfigNode& root, const std::vector<std::string>& warnings,
                                const Registries& registries, Communicator& communicator, StopToken& stop,
                                std::ostream& out);

// Names of one kind ("methods", "hooks", ...), one per line; NotFound names the kinds.
absl::StatusOr<std::string> ListNames(const std::string& kind, const Registries& registries);

}  // namespace ssl

#endif  // SSL_TOOLS_COMMAND_H_
