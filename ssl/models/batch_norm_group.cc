// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/batch_norm_group.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/config/world_shape.h"
#include "ssl/distributed/communicator.h"
#include "ssl/models/model_section.h"

namespace ssl {
namespace {

constexpr char kPath[] = "config.MODEL.SYNC_BN_CONFIG";

const ConfigNode& Node(const ConfigNode& config) { return config.Section("MODEL").Section("SYNC_BN_CONFIG"); }

// "run.yaml:5: config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE".
std::string GroupSizeKey(const ConfigNode& config) {
  const ConfigNode* size = Node(config).Find("GROUP_SIZE");
  const ConfigNode& place = size == nullptr ? Node(config) : *size;
  return absl::StrCat(place.location().ToString(), ": ", kPath, ".GROUP_SIZE");
}

absl::StatusOr<int64_t> RanksOfNode(const ConfigNode& config, int64_t ranks) {
  SSL_ASSIGN_OR_RETURN(const WorldShape shape, ReadWorldShape(config));
  if (shape.nodes == 1) return ranks;
  if (shape.ranks() == ranks) return shape.ranks_per_node;
  return absl::InvalidArgumentError(
      absl::StrCat(GroupSizeKey(config), " is -1, the ranks of a node, in a world of ", ranks,
                   " ranks, but config.DISTRIBUTED describes ", shape.nodes, " nodes with ", shape.ranks_per_node,
                   " each; correct NUM_NODES and NUM_PROC_PER_NODE, or set GROUP_SIZE to 0 (all ",
                   "ranks) or to a number of ranks"));
}

// apex asserts that groups divide the world; VISSL's groups of LibTorch's kind end with a smaller one.
absl::Status CheckDivides(const SyncBatchNormSection& section, int64_t size, int64_t ranks, const ConfigNode& config) {
  if (section.sync_bn_type != "apex" || ranks % size == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(GroupSizeKey(config), " is ", size, ", which does not divide ", ranks,
                   " ranks, as SYNC_BN_TYPE apex demands; set GROUP_SIZE to 0 (all ranks) or to a divisor, or ",
                   "SYNC_BN_TYPE to pytorch, whose last group is smaller"));
}

}  // namespace

absl::StatusOr<int64_t> BatchNormGroupSize(const ConfigNode& config, int64_t ranks) {
  SyncBatchNormSection section;
  SSL_RETURN_IF_ERROR(ReadOptions(Node(config), kPath, UnknownKeys::kIgnore, &section));
  if (!section.convert_bn_to_sync_bn) return 1;
  if (section.group_size < 0) return RanksOfNode(config, ranks);
  const int64_t size = section.group_size == 0 ? ranks : std::min(ranks, section.group_size);
  SSL_RETURN_IF_ERROR(CheckDivides(section, size, ranks, config));
  return size;
}

absl::StatusOr<std::shared_ptr<Communicator>> MakeBatchNormGroup(const ConfigNode& config, Communicator& world) {
  SSL_ASSIGN_OR_RETURN(const int64_t size, BatchNormGroupSize(config, world.size()));
  if (size == 1) return nullptr;
  if (size == world.size()) return world.Duplicate();
  const int64_t rest = world.size() % size;
  if (rest > 0 && world.rank() == 0) {
    SSL_LOG(WARNING) << kPath << ".GROUP_SIZE is " << size << " in a world of " << world.size()
                     << " ranks: the last group has " << rest << ", and batch statistics of fewer images";
  }
  SSL_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> group, world.Split(world.rank() / size));
  if (group->size() == 1) return nullptr;  // the last one of a world that groups do not divide
  return group;
}

}  // namespace ssl
