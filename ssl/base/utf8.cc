// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace ssl {
namespace {

// Bytes of the character that begins with `first`; 0 where none does.
size_t LengthOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

// bytes: of one character, by its first byte.
bool IsCharacter(absl::string_view bytes) {
  if (bytes.size() == 1) return true;
  uint32_t code_point = static_cast<uint8_t>(bytes[0]) & (0xFFu >> (bytes.size() + 1));
  for (const char byte : bytes.substr(1)) {
    if ((static_cast<uint8_t>(byte) & 0xC0) != 0x80) return false;
    code_point = code_point << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  }
  if (bytes.size() == 3) return code_point >= 0x800 && (code_point < 0xD800 || code_point > 0xDFFF);
  return bytes.size() == 2 || (code_point >= 0x10000 && code_point <= 0x10FFFF);
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = LengthOf(static_cast<uint8_t>(text[0]));
    if (length == 0 || length > text.size() || !IsCharacter(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string EscapeUnlessUtf8(absl::string_view text) {
  return IsUtf8(text) ? std::string(text) : absl::CHexEscape(text);
}

std::string EscapeForMessage(absl::string_view text) {
  const bool is_line = std::none_of(text.begin(), text.end(), absl::ascii_iscntrl);
  return is_line ? EscapeUnlessUtf8(text) : absl::CHexEscape(text);
}

}  // namespace ssl
