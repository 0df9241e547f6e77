// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/flow_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

absl::Status NoFlowValue(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no flow value"));
}

// The position after the quoted text that begins at `begin`; npos when nothing closes it.
size_t SkipQuoted(absl::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool is_doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!is_doubled) return i + 1;
      ++i;
    }
  }
  return absl::string_view::npos;
}

bool BeginsQuoted(absl::string_view text) { return absl::StartsWith(text, "\"") || absl::StartsWith(text, "'"); }

std::string Unquote(absl::string_view text) {
  const char quote = text[0];
  std::string value;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    char c = text[i];
    if (quote == '\'' && c == quote) {
      ++i;  // Two quotes stand for one.
    } else if (quote == '"' && c == '\\') {
      c = text[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    value.push_back(c);
  }
  return value;
}

absl::StatusOr<ConfigNode> ParseQuoted(absl::string_view text) {
  if (SkipQuoted(text, 0) != text.size()) return NoFlowValue(text);
  return ConfigNode::Scalar(Unquote(text), /*quoted=*/true);
}

// The parts of a list or a map, without the empty one after a last comma.
std::vector<absl::string_view> Parts(absl::string_view text) {
  std::vector<absl::string_view> parts = SplitTopLevel(text.substr(1, text.size() - 2), ',');
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

absl::StatusOr<ConfigNode> ParseList(absl::string_view text) {
  if (!absl::EndsWith(text, "]") || text.size() < 2) return NoFlowValue(text);
  ConfigNode list = ConfigNode::List();
  for (absl::string_view part : Parts(text)) {
    absl::StatusOr<ConfigNode> item = ParseFlowValue(part);
    if (part.empty() || !item.ok()) return part.empty() ? NoFlowValue(text) : item.status();
    list.Append(*std::move(item));
  }
  return list;
}

absl::StatusOr<ConfigNode> ParseMap(absl::string_view text) {
  if (!absl::EndsWith(text, "}") || text.size() < 2) return NoFlowValue(text);
  ConfigNode map = ConfigNode::Map();
  for (absl::string_view part : Parts(text)) {
    const absl::string_view key_text = SplitTopLevel(part, ':')[0];
    absl::string_view value_text = part.substr(static_cast<size_t>(key_text.end() - part.begin()));
    const absl::StatusOr<ConfigNode> key = ParseFlowValue(key_text);
    value_text = absl::StripLeadingAsciiWhitespace(value_text);
    const bool has_value = absl::ConsumePrefix(&value_text, ":");
    if (!has_value || !key.ok() || !key->is_scalar()) return NoFlowValue(part);
    absl::StatusOr<ConfigNode> value = ParseFlowValue(value_text);
    if (!value.ok()) return value.status();
    map.Set(key->text(), *std::move(value));
  }
  return map;
}

}  // namespace

std::vector<absl::string_view> SplitTopLevel(absl::string_view text, char separator) {
  std::vector<absl::string_view> pieces;
  int depth = 0;
  size_t begin = 0;
  bool begins_value = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (begins_value && (c == '"' || c == '\'')) {
      i = std::min(SkipQuoted(text, i), text.size()) - 1;
      begins_value = false;
      continue;
    }
    if (depth == 0 && c == separator) {
      pieces.push_back(absl::StripAsciiWhitespace(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    const bool opens = c == separator || absl::StrContains("[{,:", absl::string_view(&c, 1));
    begins_value = opens || (begins_value && absl::ascii_isspace(static_cast<unsigned char>(c)));
  }
  pieces.push_back(absl::StripAsciiWhitespace(text.substr(begin)));
  return pieces;
}

absl::StatusOr<ConfigNode> ParseFlowValue(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text == "~" || absl::EqualsIgnoreCase(text, "null")) return ConfigNode::Null();
  if (BeginsQuoted(text)) return ParseQuoted(text);
  if (text[0] == '[') return ParseList(text);
  if (text[0] == '{') return ParseMap(text);
  if (text.find_first_of("[]{},\"") != absl::string_view::npos) return NoFlowValue(text);
  return ConfigNode::Scalar(std::string(text));
}

}  // namespace ssl
