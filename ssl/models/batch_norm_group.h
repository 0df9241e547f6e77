// SPDX-License-Identifier: Apache-2.0
//
// MODEL.SYNC_BN_CONFIG: the ranks that share the statistics of batch norm. VISSL's meaning of GROUP_SIZE:
//
//   -1  the ranks of a node (DISTRIBUTED.NUM_PROC_PER_NODE); of one node alone, all ranks
//    0  all ranks
//    n  ranks [0, n), [n, 2n) ...: the last group has what is left, with a warning, and with SYNC_BN_TYPE apex, which
//       asserts that groups divide the world, none is: an error; n above the number of ranks: all
#ifndef SSL_MODELS_BATCH_NORM_GROUP_H_
#define SSL_MODELS_BATCH_NORM_GROUP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"

namespace ssl {

class Communicator;

// Ranks of a group in a world of `ranks`; 1: each rank has its own statistics. config: the tree under "config".
// InvalidArgument when GROUP_SIZE asks for nodes and DISTRIBUTED describes another world, and when groups of apex do
// not divide it.
absl::StatusOr<int64_t> BatchNormGroupSize(const ConfigNode& config, int64_t ranks);

// The rank's group with a communicator of its own, so that its operations meet no others, of gradients for example; or
// null when each rank has its own statistics. Collective. It lives at most as long as `world`.
absl::StatusOr<std::shared_ptr<Communicator>> MakeBatchNormGroup(const ConfigNode& config, Communicator& world);

}  // namespace ssl

#endif  // SSL_MODELS_BATCH_NORM_GROUP_H_
