// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/broken_images_results.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/fault_counts.h"
#include "ssl/data/replaced_images.h"

namespace ssl {
namespace {

// "6 images of train", for each split that has some.
std::vector<std::string> Totals(const ConfigNode& broken) {
  std::vector<std::string> totals;
  for (const char* split : {"train", "test"}) {
    const ConfigNode* counts = broken.Find(split);
    if (counts == nullptr) continue;
    const std::string total = counts->Find("total")->text();
    totals.push_back(absl::StrCat(total, total == "1" ? " image of " : " images of ", split));
  }
  return totals;
}

}  // namespace

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

absl::StatusOr<std::map<int64_t, ReadFault>> BrokenImagesOf(const BatchSource& source, Communicator& communicator) {
  std::map<int64_t, ReadFault> images;
  const auto* reader = dynamic_cast<const ReplacedImages*>(&source);
  if (reader == nullptr) return images;
  images = reader->replaced_images();
  SSL_RETURN_IF_ERROR(JoinFaults(communicator, &images));
  return images;
}

ConfigNode BrokenImagesTree(const BrokenSplits& splits) {
  ConfigNode tree = ConfigNode::Map();
  for (const auto& [name, images] : splits) {
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

absl::StatusOr<ConfigNode> BrokenImagesOf(const std::vector<std::pair<std::string, const BatchSource*>>& sources,
                                          Communicator& communicator) {
  BrokenSplits splits;
  for (const auto& [name, source] : sources) {
    SSL_ASSIGN_OR_RETURN(splits.emplace_back(name, std::map<int64_t, ReadFault>()).second,
                         BrokenImagesOf(*source, communicator));
  }
  return BrokenImagesTree(splits);
}

std::string BrokenImagesLine(const ConfigNode& broken) {
  const std::vector<std::string> splits = Totals(broken);
  return splits.empty() ? "" : absl::StrCat("left out, as they cannot be read: ", absl::StrJoin(splits, ", "), "\n");
}

std::string BrokenRowsLine(const ConfigNode& broken) {
  const std::vector<std::string> splits = Totals(broken);
  if (splits.empty()) return "";
  return absl::StrCat("cannot be read: ", absl::StrJoin(splits, ", "),
                      "; their rows are of what stands in for them: <split>_broken.json names them\n");
}

}  // namespace ssl
