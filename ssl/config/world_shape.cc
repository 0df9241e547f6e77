// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/world_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kMost = 1 << 20;  // the product of two stays far from the largest integer

// least: also what a key that is not there counts as.
absl::StatusOr<int64_t> ReadRanks(const ConfigNode& config, absl::string_view path, int64_t least) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr || node->is_null()) return least;
  const int64_t count = node->AsInt().value_or(-1);
  if (count >= least && count <= kMost) return count;
  return absl::InvalidArgumentError(absl::StrCat(node->location().ToString(), ": config.", path, " is ",
                                                 node->Describe(), ", expected an integer from ", least, " to ",
                                                 kMost));
}

}  // namespace

absl::StatusOr<WorldShape> ReadProcesses(const ConfigNode& config) {
  WorldShape shape;
  SSL_ASSIGN_OR_RETURN(shape.nodes, ReadRanks(config, "DISTRIBUTED.NUM_NODES", 1));
  SSL_ASSIGN_OR_RETURN(shape.ranks_per_node, ReadRanks(config, "DISTRIBUTED.NUM_PROC_PER_NODE", 1));
  return shape;
}

absl::StatusOr<int64_t> ReadVirtualRanks(const ConfigNode& config) {
  return ReadRanks(config, "DISTRIBUTED.VIRTUAL_RANKS", 0);
}

absl::StatusOr<WorldShape> ReadWorldShape(const ConfigNode& config) {
  SSL_ASSIGN_OR_RETURN(const WorldShape processes, ReadProcesses(config));
  SSL_ASSIGN_OR_RETURN(const int64_t virtual_ranks, ReadVirtualRanks(config));
  return virtual_ranks == 0 ? processes : WorldShape{1, virtual_ranks};
}

}  // namespace ssl
