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

TEST(Utf8, Escaped_CanBeTakenBack) {
  EXPECT_EQ(EscapeUnlessUtf8("\xC3\xA4\\n"), "\xC3\xA4\\n");
  const std::string name =
      "a\xFF"
      "1\\\xC3\xA4\n.jpg";
  const std::string escaped = EscapeUnlessUtf8(name);
  EXPECT_TRUE(IsUtf8(escaped));
  std::string back;
  ASSERT_TRUE(absl::CUnescape(escaped, &back)) << escaped;
  EXPECT_EQ(back, name);
  EXPECT_NE(EscapeUnlessUtf8("\xFE"), EscapeUnlessUtf8("\xFF"));
}

TEST(Utf8, ForAMessage_IsOneLine) {
  EXPECT_EQ(EscapeForMessage("\xC3\xA4.jpg"), "\xC3\xA4.jpg");
  EXPECT_EQ(EscapeForMessage("a\nb\x7F"), "a\\nb\\x7f");
  EXPECT_EQ(EscapeForMessage("a\xFF"), "a\\xff");
}

}  // namespace
}  // namespace ssl
