// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/surrogate_escape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/utf8.h"

namespace ssl {
namespace {

// U+10FF80 to U+10FFFF are the marks of the bytes 0x80 to 0xFF.
constexpr absl::string_view kMarkBegin = "\xF4\x8F";
constexpr size_t kMarkBytes = 4;
constexpr size_t kEscapeBytes = 6;  // "\udcff"

// Of the character that `text` begins with; 0 where these are no UTF-8.
size_t CharacterBytes(absl::string_view text) {
  for (size_t length = 1; length <= std::min(text.size(), size_t{4}); ++length) {
    if (IsUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

void AppendMark(uint8_t byte, std::string* text) {
  absl::StrAppend(text, kMarkBegin);
  text->push_back(static_cast<char>(0xBE + (byte >> 6) - 2));
  text->push_back(static_cast<char>(0x80 | (byte & 0x3F)));
}

// The byte whose mark `text` begins with; -1: none.
int MarkedByte(absl::string_view text) {
  if (text.size() < kMarkBytes || !absl::StartsWith(text, kMarkBegin)) return -1;
  const auto third = static_cast<uint8_t>(text[2]), fourth = static_cast<uint8_t>(text[3]);
  if (third < 0xBE || third > 0xBF) return -1;
  return (third - 0xBE + 2) << 6 | (fourth & 0x3F);
}

// Calls `replace` with the byte of each mark; the rest is appended to `result`.
template <class Replace>
std::string ReplaceMarks(absl::string_view text, const Replace& replace) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const int byte = MarkedByte(text);
    if (byte < 0) {
      const size_t end = std::min(text.find(kMarkBegin[0], 1), text.size());
      absl::StrAppend(&result, text.substr(0, end));
      text.remove_prefix(end);
    } else {
      replace(static_cast<uint8_t>(byte), &result);
      text.remove_prefix(kMarkBytes);
    }
  }
  return result;
}

// Of "\udcff" and the like that `text` begins with, the code unit; -1: it begins otherwise.
int CodeUnit(absl::string_view text) {
  if (text.size() < kEscapeBytes || !absl::StartsWith(text, "\\u")) return -1;
  const absl::string_view digits = text.substr(2, 4);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return absl::ascii_isxdigit(c); })) return -1;
  const std::string bytes = absl::HexStringToBytes(digits);
  return static_cast<uint8_t>(bytes[0]) << 8 | static_cast<uint8_t>(bytes[1]);
}

}  // namespace

std::string MarkBytes(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (length == 0 || MarkedByte(text) >= 0) {
      for (const char byte : text.substr(0, std::max<size_t>(length, 1)))
        AppendMark(static_cast<uint8_t>(byte), &result);
    } else {
      absl::StrAppend(&result, text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string UnmarkBytes(absl::string_view text) {
  return ReplaceMarks(text, [](uint8_t byte, std::string* result) { result->push_back(static_cast<char>(byte)); });
}

std::string EscapeMarks(absl::string_view json) {
  return ReplaceMarks(json, [](uint8_t byte, std::string* result) {
    absl::StrAppend(result, "\\udc", absl::Hex(byte, absl::kZeroPad2));
  });
}

std::string MarkEscapes(absl::string_view json) {
  std::string result;
  result.reserve(json.size());
  while (!json.empty()) {
    const int unit = CodeUnit(json);
    const bool is_pair = unit >= 0xD800 && unit < 0xDC00;  // a character of two units, the second of which may look so
    size_t length = std::min(json.find('\\', 1), json.size());
    if (unit >= 0xDC80 && unit <= 0xDCFF) {
      AppendMark(static_cast<uint8_t>(unit), &result);
      json.remove_prefix(kEscapeBytes);
      continue;
    }
    if (json[0] == '\\') length = std::min(is_pair ? 2 * kEscapeBytes : size_t{2}, json.size());
    absl::StrAppend(&result, json.substr(0, length));
    json.remove_prefix(length);
  }
  return result;
}

}  // namespace ssl
