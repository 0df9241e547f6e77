// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/config/yaml.h"

namespace ssl {
namespace {

constexpr int kIndent = 2;
// Readers find the colon of a key only within the first 1,024 characters (YAML 1.2, section 7.4.3); a longer one is
// marked as a key by a question mark.
constexpr size_t kLongestImplicitKey = 1000;

// Texts that YAML 1.1 or 1.2 readers do not take for strings.
bool IsReservedWord(absl::string_view text) {
  for (absl::string_view word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

bool IsPlainCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_./+-", absl::string_view(&c, 1));
}

// No indicator of YAML, no blank, no mark that begins a list item or ends a document.
bool IsPlain(absl::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsPlainCharacter)) return false;
  if (absl::StartsWith(text, "...")) return false;
  const bool digit_follows = text.size() > 1 && absl::ascii_isdigit(text[1]);
  return text[0] != '-' || digit_follows || absl::StartsWith(text, "-.");
}

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", absl::string_view(&c, 1));
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\x%02x", byte);
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

std::string WriteText(absl::string_view text, bool quoted) {
  // A quoted text loses its quotes only when nobody can take it for a number or a word.
  const bool reads_as_string = !text.empty() && absl::ascii_isalpha(text[0]);
  const bool needs_quotes = quoted && (!reads_as_string || IsReservedWord(text));
  if (needs_quotes || !IsPlain(text) || absl::EqualsIgnoreCase(text, "null")) {
    return Quote(text);
  }
  return std::string(text);
}

// Fits one line: everything without a key.
bool IsInline(const ConfigNode& node) {
  if (node.is_map()) return node.entries().empty();
  return std::all_of(node.items().begin(), node.items().end(), IsInline);
}

std::string WriteInline(const ConfigNode& node) {
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      return "null";
    case ConfigNode::Kind::kScalar:
      return WriteText(node.text(), node.quoted());
    case ConfigNode::Kind::kMap:
      return "{}";
    case ConfigNode::Kind::kList:
      break;
  }
  std::vector<std::string> items;
  for (const ConfigNode& item : node.items()) items.push_back(WriteInline(item));
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

void WriteBlock(const ConfigNode& node, int indent, std::string* text);

// What follows "key:" or "-".
void WriteValue(const ConfigNode& node, int indent, std::string* text) {
  if (IsInline(node)) {
    absl::StrAppend(text, " ", WriteInline(node), "\n");
  } else {
    text->push_back('\n');
    WriteBlock(node, indent + kIndent, text);
  }
}

void WriteKey(absl::string_view key, int indent, std::string* text) {
  const std::string written = WriteText(key, /*quoted=*/false);
  if (written.size() <= kLongestImplicitKey) {
    absl::StrAppend(text, written, ":");
  } else {
    absl::StrAppend(text, "? ", written, "\n", std::string(indent, ' '), ":");
  }
}

void WriteMapEntries(const ConfigNode& map, int indent, bool first_is_indented, std::string* text) {
  bool is_indented = first_is_indented;
  for (const auto& [key, value] : map.entries()) {
    if (!is_indented) text->append(indent, ' ');
    is_indented = false;
    WriteKey(key, indent, text);
    WriteValue(value, indent, text);
  }
}

void WriteBlock(const ConfigNode& node, int indent, std::string* text) {
  if (node.is_map()) {
    WriteMapEntries(node, indent, /*first_is_indented=*/false, text);
    return;
  }
  for (const ConfigNode& item : node.items()) {
    text->append(indent, ' ');
    text->push_back('-');
    if (item.is_map() && !item.entries().empty()) {
      text->push_back(' ');
      WriteMapEntries(item, indent + kIndent, /*first_is_indented=*/true, text);
    } else {
      WriteValue(item, indent, text);
    }
  }
}

}  // namespace

std::string WriteYaml(const ConfigNode& node) {
  if (IsInline(node)) return absl::StrCat(WriteInline(node), "\n");
  std::string text;
  WriteBlock(node, 0, &text);
  return text;
}

}  // namespace ssl
