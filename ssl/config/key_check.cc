// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/key_check.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

// More are no help.
constexpr size_t kMostSuggestions = 3;

// The paths whose last part is `key`.
void FindElsewhere(const ConfigNode& node, absl::string_view key, const std::string& path,
                   std::vector<std::string>* found) {
  for (const auto& [name, value] : node.entries()) {
    if (name == key) found->push_back(JoinPath(path, name));
    FindElsewhere(value, key, JoinPath(path, name), found);
  }
}

// How many parts at their end two paths have in common.
size_t SharedParts(absl::string_view left, absl::string_view right) {
  const std::vector<absl::string_view> a = absl::StrSplit(left, '.');
  const std::vector<absl::string_view> b = absl::StrSplit(right, '.');
  return std::mismatch(a.rbegin(), a.rbegin() + std::min(a.size(), b.size()), b.rbegin()).first - a.rbegin();
}

// Of the keys with the same last part as `path`, those that share the most parts with it, in `shared`.
std::vector<std::string> SameEnd(absl::string_view path, const ConfigNode& root, size_t* shared) {
  std::vector<std::string> found;
  FindElsewhere(root, path.substr(path.rfind('.') + 1), "", &found);
  *shared = 0;
  for (const std::string& known : found) *shared = std::max(*shared, SharedParts(known, path));
  const auto shares_less = [&](const std::string& known) { return SharedParts(known, path) < *shared; };
  found.erase(std::remove_if(found.begin(), found.end(), shares_less), found.end());
  return found;
}

std::string NearestKey(const ConfigNode& map, absl::string_view key) {
  std::vector<std::string> names;
  for (const ConfigNode::Entry& entry : map.entries()) names.push_back(entry.first);
  return NearestName(key, names);
}

// `path` with each part that its map lacks replaced by the nearest key there, as far as there are such.
std::string Corrected(absl::string_view path, const ConfigNode& root) {
  std::string known;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    const ConfigNode& parent = *root.FindPath(known);
    const bool is_known = root.FindPath(JoinPath(known, part)) != nullptr;
    const std::string key = is_known ? part : NearestKey(parent, part);
    if (key.empty()) break;
    known = JoinPath(known, key);
  }
  return known;
}

// "a map of name, values, milestones, ...": what may stand in the place of a section.
std::string MapOf(const ConfigNode& section) {
  constexpr size_t kMostKeys = 16;
  std::vector<std::string> keys;
  for (const ConfigNode::Entry& entry : section.entries()) keys.push_back(entry.first);
  const bool is_long = keys.size() > kMostKeys;
  if (is_long) keys.resize(kMostKeys);
  return absl::StrCat("a map of ", absl::StrJoin(keys, ", "), is_long ? ", ..." : "");
}

// The paths that the user may have meant.
std::vector<std::string> NearestPaths(absl::string_view path, const ConfigNode& root) {
  const std::string whole = JoinPath("config", std::string(path));
  const bool is_below = root.FindPath(JoinPath("config", std::string(path.substr(0, path.find('.'))))) != nullptr;
  if (is_below) return NearestPaths(whole, root);
  const auto length = [](absl::string_view of) { return std::count(of.begin(), of.end(), '.'); };
  const std::string corrected = Corrected(path, root);
  if (!corrected.empty() && length(corrected) == length(path)) return {corrected};
  size_t shared = 0;
  std::vector<std::string> elsewhere = SameEnd(path, root, &shared);
  const bool is_replaced = !absl::StartsWith(path, absl::StrCat(corrected, ".")) && !corrected.empty();
  if (is_replaced && shared < 2) return {corrected};
  if (elsewhere.size() > kMostSuggestions) elsewhere.clear();
  return elsewhere;
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
    problems->wrong_kinds.push_back(
        absl::StrCat(location, ": ", path, " is ", overlay.Describe(), ", expected ", MapOf(defaults)));
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
  const std::vector<std::string> nearest = NearestPaths(path, root);
  if (nearest.empty()) return absl::StrCat("unknown key '", path, "'");
  // Who gives a value to the name of a section elsewhere means a key in it.
  const ConfigNode& found = *root.FindPath(nearest.front());
  const bool is_section = nearest.size() == 1 && IsSection(found) && SharedParts(path, nearest.front()) > 0;
  return absl::StrCat("unknown key '", path, "'; did you mean '", absl::StrJoin(nearest, "' or '"), "'",
                      is_section ? absl::StrCat(", ", MapOf(found)) : "", "?");
}

}  // namespace ssl
