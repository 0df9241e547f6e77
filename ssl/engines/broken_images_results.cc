// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/broken_images_results.h"

#include <array>

#include "ssl/base/status_macros.h"
#include "ssl/data/fault_counts.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/replaced_images.h"

namespace ssl {

ConfigNode BrokenImagesTree(const std::map<std::string, int64_t>& by_kind) {
  ConfigNode kinds = ConfigNode::Map();
  int64_t total = 0;
  for (const auto& [kind, count] : by_kind) {
    kinds.Set(kind, ConfigNode::FromInt(count));
    total += count;
  }
  ConfigNode tree = ConfigNode::Map();
  tree.Set("total", ConfigNode::FromInt(total));
  tree.Set("by_kind", std::move(kinds));
  return tree;
}

absl::StatusOr<ConfigNode> BrokenImagesOf(const std::vector<std::pair<std::string, const BatchSource*>>& sources,
                                          Communicator& communicator) {
  ConfigNode tree = ConfigNode::Map();
  for (const auto& [name, source] : sources) {
    const auto* reader = dynamic_cast<const ReplacedImages*>(source);
    if (reader == nullptr) continue;
    std::map<int64_t, ReadFault> images = reader->replaced_images();
    SSL_RETURN_IF_ERROR(JoinFaults(communicator, &images));
    if (images.empty()) continue;
    const std::array<int64_t, kNumReadFaults> counts = CountFaults(images);
    std::map<std::string, int64_t> by_kind;
    for (const ReadFault fault : kKindsOfBroken) {
      by_kind[std::string(ReadFaultName(fault))] = counts[static_cast<int>(fault)];
    }
    tree.Set(name, BrokenImagesTree(by_kind));
  }
  return tree;
}

}  // namespace ssl
