// SPDX-License-Identifier: Apache-2.0
//
// How many ranks a configuration is written for, which settings such as learning rates and queue lengths follow:
// DISTRIBUTED.VIRTUAL_RANKS, or else one for each process of NUM_NODES and NUM_PROC_PER_NODE. Stateless; safe from any
// thread.
#ifndef SSL_CONFIG_WORLD_SHAPE_H_
#define SSL_CONFIG_WORLD_SHAPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"

namespace ssl {

struct WorldShape {
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;

  int64_t ranks() const { return nodes * ranks_per_node; }
};

// config: the tree under "config". A count that is missing or null is 1. InvalidArgument, with the place, for anything
// but an integer from 1 to 1048576.
absl::StatusOr<WorldShape> ReadProcesses(const ConfigNode& config);

// The same of VIRTUAL_RANKS, where 0 means that there are none, as do missing and null.
absl::StatusOr<int64_t> ReadVirtualRanks(const ConfigNode& config);

// Virtual ranks count as ranks of one node, wherever their processes are: what follows must not depend on these.
absl::StatusOr<WorldShape> ReadWorldShape(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CONFIG_WORLD_SHAPE_H_
