// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/merge.h"

#include <cstddef>
#include <map>

namespace ssl {
namespace {

void Replace(ConfigNode* base, const ConfigNode& overlay) {
  const bool free_form = base->free_form();
  *base = overlay;
  base->set_free_form(free_form);
}

// Looks keys up in a tree, not one after the other: maps of a generated file may hold tens of thousands of them.
void MergeMaps(ConfigNode* base, const ConfigNode& overlay) {
  std::map<std::string, size_t> known;
  for (const ConfigNode::Entry& entry : base->entries()) known.emplace(entry.first, known.size());
  for (const ConfigNode::Entry& entry : overlay.entries()) {
    const auto found = known.find(entry.first);
    if (found == known.end()) {
      base->mutable_entries()->push_back(entry);
    } else {
      MergeInto(&(*base->mutable_entries())[found->second].second, entry.second);
    }
  }
}

bool IsPlainMap(const ConfigNode& node) { return node.is_map() && !node.free_form(); }

void AddCommonKeys(const ConfigNode& left, const ConfigNode& right, const std::string& path,
                   std::vector<std::string>* common) {
  for (const auto& [key, value] : right.entries()) {
    const ConfigNode* present = left.Find(key);
    if (present == nullptr) continue;
    if (IsPlainMap(*present) && IsPlainMap(value)) {
      AddCommonKeys(*present, value, JoinPath(path, key), common);
    } else {
      common->push_back(JoinPath(path, key));
    }
  }
}

}  // namespace

void MergeInto(ConfigNode* base, const ConfigNode& overlay) {
  if (base->is_map() && overlay.is_map()) {
    MergeMaps(base, overlay);
  } else {
    Replace(base, overlay);
  }
}

std::vector<std::string> CommonKeys(const ConfigNode& left, const ConfigNode& right) {
  std::vector<std::string> common;
  AddCommonKeys(left, right, "", &common);
  return common;
}

}  // namespace ssl
