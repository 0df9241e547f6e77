// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/utf8.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(Utf8, FirstAndLastCharacterOfEachLength) {
  for (const char* text : {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "z\xC3\xA4z"}) {
    EXPECT_TRUE(IsUtf8(text)) << absl::CHexEscape(text);
  }
}

TEST(Utf8, WhatIsNone) {
  for (const char* text :
       {"\x80", "\xC3", "\xC3z", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(text)) << absl::CHexEscape(text);
  }
}

TEST(Utf8, ForAMessage_IsOneLineAndKeepsLetters) {
  EXPECT_EQ(EscapeForMessage("\xC3\xA4 '\\\" \xE6\x97\xA5\xF0\x9F\x90\x88.jpg"),
            "\xC3\xA4 '\\\" \xE6\x97\xA5\xF0\x9F\x90\x88.jpg");
  EXPECT_EQ(EscapeForMessage("\xC3\xA4\nb\x7F\x1B[31m\r\t"), "\xC3\xA4\\nb\\x7f\\x1b[31m\\r\\t");
  EXPECT_EQ(EscapeForMessage(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(EscapeForMessage("a\xFF\xC3"), "a\\xff\\xc3");
}

TEST(Utf8, ForAMessage_WhatOthersTakeForControlIsEscaped) {
  EXPECT_EQ(EscapeForMessage("\xC2\x9B\xC2\x9F\xC2\xA0"), "\\u009b\\u009f\xC2\xA0");
  EXPECT_EQ(EscapeForMessage("\xD8\x9C\xE2\x80\x8D\xE2\x80\x8E\xE2\x80\xA8\xE2\x80\xAE\xE2\x80\xAF"),
            "\\u061c\xE2\x80\x8D\\u200e\\u2028\\u202e\xE2\x80\xAF");
  EXPECT_EQ(EscapeForMessage("\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA"), "\\u2066\\u2069\xE2\x81\xAA");
}

TEST(Utf8, ForATerminal_KeepsLineFeedsAndWhatIsEscaped) {
  const std::string once = EscapeForTerminal("a\n\x1B[31m\xE2\x80\xAE\xFF");
  EXPECT_EQ(once, "a\n\\x1b[31m\\u202e\\xff");
  EXPECT_EQ(EscapeForTerminal(once), once);
}

}  // namespace
}  // namespace ssl
