// SPDX-License-Identifier: Apache-2.0
//
// Which rank a command is, or which ranks it starts: its flags, its environment and DISTRIBUTED, before the
// configuration is resolved, because learning rates and queue lengths follow the number of ranks. Stateless; safe from
// any thread.
//
//   SSL_ASSIGN_OR_RETURN(const RunWorld world, FindRunWorld(flags, options, ProcessVariable));
#ifndef SSL_TOOLS_RUN_WORLD_H_
#define SSL_TOOLS_RUN_WORLD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/world_options.h"
#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/launch_environment.h"

namespace ssl {

struct LaunchFlags {
  std::string launch;    // "local:N"; "" for none
  int64_t node = -1;     // VISSL's --node_id; below 0 for none
  int64_t restarts = 0;  // of the ranks that are started
};

struct RunWorld {
  WorldPlace place;       // this process's, or that of the first rank which it starts
  bool launches = false;  // it starts place.local_size ranks, and is none of them

  // As far as this host can tell; all hosts have as many ranks, mostly.
  WorldShape shape() const;
};

// The environment of a rank goes before everything else (launch_environment.h): its flags and keys are those of the
// command that started it. Without one, --launch=local:N or NUM_NODES and NUM_PROC_PER_NODE ask for ranks to be
// started; else this is one process. InvalidArgument for a flag that is wrong, or contradicts the environment, for an
// OMP_NUM_THREADS that is no number of threads, and the errors of FindWorldPlace and PlaceFromOptions.
absl::StatusOr<RunWorld> FindRunWorld(const LaunchFlags& flags, const WorldOptions& options,
                                      const EnvironmentVariable& variable);

// For people: "this command starts 2 ranks, 0 to 1 of 2; they meet at a free port of this host", "rank 1 of 4
// (torchrun), 1 of the 2 on this host; ranks meet at gpu1:29500".
std::string Describe(const RunWorld& world);

// "4 virtual ranks on 2 processes".
std::string DescribeVirtualRanks(int64_t virtual_ranks, int64_t processes);

}  // namespace ssl

#endif  // SSL_TOOLS_RUN_WORLD_H_
