// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// Bytes of the character that begins with `first`; 0 where none does.
size_t LengthOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

// Bytes of the character that `text` begins with, and its code point; 0 where these are no UTF-8. text: not empty.
size_t FirstCharacter(absl::string_view text, uint32_t* code_point) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t length = LengthOf(first);
  if (length == 0 || length > text.size()) return 0;
  *code_point = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (const char byte : text.substr(1, length - 1)) {
    if ((static_cast<uint8_t>(byte) & 0xC0) != 0x80) return 0;
    *code_point = *code_point << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  }
  const bool is_surrogate = *code_point >= 0xD800 && *code_point <= 0xDFFF;
  if (length == 3) return *code_point >= 0x800 && !is_surrogate ? 3 : 0;
  if (length == 4) return *code_point >= 0x10000 && *code_point <= 0x10FFFF ? 4 : 0;
  return length;
}

// Of Unicode's categories Cc, Zl and Zp, and what its bidirectional algorithm calls formatting characters.
bool IsControl(uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0)) return true;
  if (code_point == 0x061C || code_point == 0x200E || code_point == 0x200F) return true;
  return (code_point >= 0x2028 && code_point <= 0x202E) || (code_point >= 0x2066 && code_point <= 0x2069);
}

std::string Escape(absl::string_view text, bool keeps_line_feeds) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = FirstCharacter(text, &code_point);
    const absl::string_view bytes = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(bytes.size());
    if (length > 0 && (!IsControl(code_point) || (keeps_line_feeds && code_point == '\n'))) {
      absl::StrAppend(&escaped, bytes);
    } else if (length > 1) {
      absl::StrAppend(&escaped, "\\u", absl::Hex(code_point, absl::kZeroPad4));
    } else {
      absl::StrAppend(&escaped, absl::CHexEscape(bytes));
    }
  }
  return escaped;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  uint32_t code_point = 0;
  while (!text.empty()) {
    const size_t length = FirstCharacter(text, &code_point);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string EscapeForMessage(absl::string_view text) { return Escape(text, /*keeps_line_feeds=*/false); }

std::string EscapeForTerminal(absl::string_view text) { return Escape(text, /*keeps_line_feeds=*/true); }

}  // namespace ssl
