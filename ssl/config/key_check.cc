// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/key_check.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

// The first path whose last part is `key`, or "".
std::string FindElsewhere(const ConfigNode& node, absl::string_view key, const std::string& path) {
  for (const auto& [name, value] : node.entries()) {
    if (name == key) return JoinPath(path, name);
    const std::string below = FindElsewhere(value, key, JoinPath(path, name));
    if (!below.empty()) return below;
  }
  return "";
}

std::string NearestKey(const ConfigNode& map, absl::string_view key) {
  std::vector<std::string> names;
  for (const ConfigNode::Entry& entry : map.entries()) names.push_back(entry.first);
  return NearestName(key, names);
}

// The path that the user may have meant, or "".
std::string NearestPath(absl::string_view path, const ConfigNode& root) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  std::string known;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ConfigNode& parent = *root.FindPath(known);
    if (root.FindPath(JoinPath(known, parts[i])) != nullptr) {
      known = JoinPath(known, parts[i]);
      continue;
    }
    const std::string nearest = NearestKey(parent, parts[i]);
    if (nearest.empty()) break;
    const std::string corrected = JoinPath(known, nearest);
    const std::string rest = absl::StrJoin(parts.begin() + i + 1, parts.end(), ".");
    const std::string whole = rest.empty() ? corrected : JoinPath(corrected, rest);
    return root.FindPath(whole) != nullptr ? whole : corrected;
  }
  return FindElsewhere(root, parts.back(), "");
}

}  // namespace

bool HasEmptyPart(absl::string_view path) {
  return path.empty() || path.front() == '.' || path.back() == '.' || absl::StrContains(path, "..");
}

bool IsSection(const ConfigNode& defaults) {
  return defaults.is_map() && !defaults.free_form() && !defaults.entries().empty();
}

void CheckKeys(const ConfigNode& defaults, const ConfigNode& overlay, const std::string& path, const ConfigNode& root,
               KeyProblems* problems) {
  if (!IsSection(defaults) || overlay.is_null()) return;
  const std::string location = overlay.location().ToString();
  if (!overlay.is_map()) {
    problems->wrong_kinds.push_back(absl::StrCat(location, ": ", path, " is ", overlay.Describe(), ", expected a map"));
    return;
  }
  for (const auto& [key, value] : overlay.entries()) {
    const std::string key_path = JoinPath(path, key);
    if (const ConfigNode* known = defaults.Find(key)) {
      CheckKeys(*known, value, key_path, root, problems);
    } else if (problems->unknown_keys.size() >= problems->max_listed_keys) {
      ++problems->unlisted_keys;
    } else {
      problems->unknown_keys.push_back(absl::StrCat(value.location().ToString(), ": ", UnknownKey(key_path, root)));
    }
  }
}

bool HasKey(const ConfigNode& tree, absl::string_view path) {
  std::string known;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    if (tree.FindPath(known)->free_form()) return true;
    known = JoinPath(known, part);
    if (tree.FindPath(known) == nullptr) return false;
  }
  return true;
}

std::string UnknownKey(absl::string_view path, const ConfigNode& root) {
  const std::string nearest = NearestPath(path, root);
  const std::string hint = nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
  return absl::StrCat("unknown key '", path, "'", hint);
}

}  // namespace ssl
