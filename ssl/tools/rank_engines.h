// SPDX-License-Identifier: Apache-2.0
//
// The engines of one command, as the ranks of one process run them: one, or several virtual ones in turn
// (ssl/distributed/virtual_world.h), which share its run directory, its log and its signals.
#ifndef SSL_TOOLS_RANK_ENGINES_H_
#define SSL_TOOLS_RANK_ENGINES_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/world_options.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/tools/run_record.h"

namespace ssl {

// What all ranks of a process run. References outlive the run.
struct EngineRun {
  const ConfigNode& root;  // {engine_name, config}, resolved
  const Registries& registries;
  FileSystem& file_system;
  const std::string& directory;
  RunRecord& record;
  StopToken& stop;
  std::ostream& out;  // for what engines report to rank 0
};

// Before ranks are started, or anything is written: makes the engines of `root` as a run would, with its errors.
// Unimplemented where one of them computes on MACHINE.DEVICE and this program has no code for that; InvalidArgument
// where the environment forbids the algorithms that it asks for. Returns whether one of them trains in the run
// directory.
absl::StatusOr<bool> TrainsInRunDirectory(const ConfigNode& root, const BuildContext& context);

// Runs the engines on all ranks that are this process's; true when all work is done, false when it was stopped. Of
// several ranks that fail, the error of one that has not failed because of others, as is that of the report that is
// left (failure_report.h). Each virtual rank computes with as many threads as `world` says. Collective.
absl::StatusOr<bool> RunEnginesOfRanks(const EngineRun& run, const WorldOptions& world, Communicator& processes);

}  // namespace ssl

#endif  // SSL_TOOLS_RANK_ENGINES_H_
