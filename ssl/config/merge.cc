// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/merge.h"

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace ssl {
namespace {

void Replace(ConfigNode* base, const ConfigNode& overlay) {
  const bool free_form = base->free_form();
  *base = overlay;
  base->set_free_form(free_form);
}

// Looks keys up by hash: maps of a generated file may hold tens of thousands of them.
void MergeMaps(ConfigNode* base, const ConfigNode& overlay) {
  absl::flat_hash_map<std::string, size_t> known;
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

}  // namespace

void MergeInto(ConfigNode* base, const ConfigNode& overlay) {
  if (base->is_map() && overlay.is_map()) {
    MergeMaps(base, overlay);
  } else {
    Replace(base, overlay);
  }
}

}  // namespace ssl
