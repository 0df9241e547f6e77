// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/world_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kMost = 1 << 20;  // the product of two stays far from the largest integer

absl::StatusOr<int64_t> ReadRanks(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr || node->is_null()) return 1;
  const int64_t count = node->AsInt().value_or(0);
  if (count >= 1 && count <= kMost) return count;
  return absl::InvalidArgumentError(absl::StrCat(node->location().ToString(), ": config.", path, " is ",
                                                 node->Describe(), ", expected an integer from 1 to ", kMost));
}

}  // namespace

absl::StatusOr<WorldShape> ReadWorldShape(const ConfigNode& config) {
  WorldShape shape;
  SSL_ASSIGN_OR_RETURN(shape.nodes, ReadRanks(config, "DISTRIBUTED.NUM_NODES"));
  SSL_ASSIGN_OR_RETURN(shape.ranks_per_node, ReadRanks(config, "DISTRIBUTED.NUM_PROC_PER_NODE"));
  return shape;
}

}  // namespace ssl
