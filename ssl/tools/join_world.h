// SPDX-License-Identifier: Apache-2.0
//
// How a process becomes one rank of a world.
#ifndef SSL_TOOLS_JOIN_WORLD_H_
#define SSL_TOOLS_JOIN_WORLD_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/world_options.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/launch_environment.h"

namespace ssl {

struct JoinedWorld {
  std::unique_ptr<Communicator> communicator;
  WorldShape shape;  // the same on every rank
};

// Nothing happens in a world of one. In a larger one this process computes with its share of the cores of the host on
// which it has met other ranks (rank_threads.h says when); and LibTorch's own log, which prints stack traces of the
// errors that come back here, falls silent unless TORCH_CPP_LOG_LEVEL is set. Once in a process, by
// its main thread. Collective; the errors of OpenWorld.
absl::StatusOr<JoinedWorld> JoinWorld(const WorldPlace& place, const WorldOptions& options);

// Compares the composed tree and the program, which is a file, with rank 0's. InvalidArgument, the same on every rank,
// names the first rank that differs, its host, and the first key or that it is another build. Collective.
absl::Status CheckSameStart(const ConfigNode& root, const std::string& program, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_TOOLS_JOIN_WORLD_H_
