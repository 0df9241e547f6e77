// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/message_place.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kRoot = "config.";
constexpr absl::string_view kNoPlace = "built in: ";

bool IsPartOfAKey(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// The key that begins at `text`: "config.MODEL.HEAD.PARAMS" of "config.MODEL.HEAD.PARAMS[0]: ...".
absl::string_view KeyAt(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && IsPartOfAKey(text[length])) ++length;
  absl::string_view key = text.substr(0, length);
  while (absl::ConsumeSuffix(&key, ".")) {
  }
  return key;
}

// "file:line: " at the beginning, or a place in parentheses further on.
bool HasPlace(absl::string_view line) {
  if (absl::StrContains(line, "command line") || absl::StrContains(line, ".yaml:")) return true;
  const absl::string_view first = line.substr(0, line.find(": "));
  const size_t colon = first.rfind(':');
  return first.size() < line.size() && colon != first.npos && colon + 1 < first.size() &&
         first.find_first_not_of("0123456789", colon + 1) == first.npos;
}

}  // namespace

std::string WithPlaceOfKey(absl::string_view line, const ConfigNode& root) {
  if (HasPlace(line)) return std::string(line);
  absl::ConsumePrefix(&line, kNoPlace);
  std::string text(line);
  bool is_subject = true;
  for (size_t at = line.find(kRoot); at != line.npos; at = line.find(kRoot, at + 1)) {
    if (at > 0 && (IsPartOfAKey(line[at - 1]) || line[at - 1] == '/')) continue;
    const absl::string_view key = KeyAt(line.substr(at));
    const ConfigNode* node = root.FindPath(key);
    if (node == nullptr) continue;
    if (!node->location().file.empty()) return absl::StrCat(node->location().ToString(), ": ", text);
    const size_t end = at + key.size();
    if (is_subject && !node->is_map() && absl::StartsWith(line.substr(end), " is ")) {
      text = absl::StrCat(line.substr(0, end), " (not set)", line.substr(end));
    }
    is_subject = false;
  }
  return text;
}

}  // namespace ssl
