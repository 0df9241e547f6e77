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

// Whether `file` stands anywhere in it with a number behind, as "command line:2" does.
bool NamesLineOf(absl::string_view file, absl::string_view line) {
  for (size_t at = line.find(file); at != line.npos; at = line.find(file, at + 1)) {
    const absl::string_view rest = line.substr(at + file.size());
    if (!rest.empty() && absl::ascii_isdigit(static_cast<unsigned char>(rest[0]))) return true;
  }
  return false;
}

// "file:line: " or "command line: " at the beginning, or a place in parentheses further on.
bool HasPlace(absl::string_view line) {
  if (absl::StartsWith(line, "command line: ")) return true;
  if (NamesLineOf("command line:", line) || NamesLineOf(".yaml:", line)) return true;
  const absl::string_view first = line.substr(0, line.find(": "));
  const size_t colon = first.rfind(':');
  return first.size() < line.size() && colon != first.npos && colon + 1 < first.size() &&
         first.find_first_not_of("0123456789", colon + 1) == first.npos;
}

}  // namespace

std::string WithPlaceOfKey(absl::string_view line, const ConfigNode& root) {
  if (HasPlace(line)) return std::string(line);
  absl::ConsumePrefix(&line, kNoPlace);
  bool is_subject = true;
  for (size_t at = line.find(kRoot); at != line.npos; at = line.find(kRoot, at + 1)) {
    if (at > 0 && (IsPartOfAKey(line[at - 1]) || line[at - 1] == '/')) continue;
    const absl::string_view key = KeyAt(line.substr(at));
    const absl::string_view rest = line.substr(at + key.size());
    const ConfigNode* node = root.FindPath(key);
    if (node == nullptr || absl::StartsWith(rest, "=")) continue;  // the latter is what to type
    if (!node->location().file.empty()) return absl::StrCat(node->location().ToString(), ": ", line);
    if (is_subject && !node->is_map() && absl::StartsWith(rest, " is ")) {
      return absl::StrCat(line.substr(0, at + key.size()), " (not set)", rest);
    }
    is_subject = false;
  }
  return std::string(line);
}

}  // namespace ssl
