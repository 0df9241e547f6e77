// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/left_at_default.h"

#include <algorithm>
#include <vector>

namespace ssl {
namespace {

bool StandsWith(const ConfigNode& value, const ConfigNode& by_default) {
  const SourceLocation& place = value.location();
  return place.file == by_default.location().file && place.line == by_default.location().line;
}

}  // namespace

bool IsLeftAtDefault(const ConfigNode* value, const ConfigNode* by_default) {
  if (value == nullptr || by_default == nullptr) return value == nullptr;
  // A section keeps its place when keys are merged into it, and so does a list when an item is replaced.
  const std::vector<ConfigNode::Entry>& entries = value->entries();
  if (!entries.empty()) {
    return std::all_of(entries.begin(), entries.end(), [by_default](const ConfigNode::Entry& entry) {
      return IsLeftAtDefault(&entry.second, by_default->Find(entry.first));
    });
  }
  const std::vector<ConfigNode>& items = value->items();
  return StandsWith(*value, *by_default) && items.size() == by_default->items().size() &&
         std::equal(items.begin(), items.end(), by_default->items().begin(),
                    [](const ConfigNode& item, const ConfigNode& usual) { return IsLeftAtDefault(&item, &usual); });
}

}  // namespace ssl
