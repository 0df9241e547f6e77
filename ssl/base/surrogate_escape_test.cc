// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/surrogate_escape.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/base/utf8.h"

namespace ssl {
namespace {

TEST(SurrogateEscape, EveryNameComesBack) {
  for (const std::string name :
       {"", "a", "\xC3\xA4/\xF0\x9F\x90\x88.jpg", "x\xFF.jpg", "\xC3\xA4\xFF\x80\xC3", "\\udcff", "\\\\udcff\xFE",
        // Characters that are marks themselves, one of them cut off.
        "\xF4\x8F\xBE\x80\xF4\x8F\xBF\xBF\xFF", "\xF4\x8F\xBF", "\xF4\x8F\xBD\xBF"}) {
    const std::string marked = MarkBytes(name);
    EXPECT_TRUE(IsUtf8(marked));
    EXPECT_EQ(UnmarkBytes(marked), name);
    const std::string json = EscapeMarks(marked);
    EXPECT_TRUE(IsUtf8(json));
    const bool has_marks = name.find("\xF4\x8F\xBF") != std::string::npos;
    EXPECT_EQ(json == name, IsUtf8(name) && !has_marks);
  }
}

TEST(SurrogateEscape, Bytes_AreAsInPython) {
  EXPECT_EQ(EscapeMarks(MarkBytes("\xC3\xA4\xFF.jpg")), "\xC3\xA4\\udcff.jpg");
  EXPECT_EQ(EscapeMarks(MarkBytes("\x80\xC3")), "\\udc80\\udcc3");
}

TEST(SurrogateEscape, Escapes_AreReadInJsonOnly) {
  EXPECT_EQ(UnmarkBytes(MarkEscapes("[\"\\udcff\\uDC80\"]")), "[\"\xFF\x80\"]");
  // A backslash, which JSON doubles; a character of two units; other escapes; an end within one.
  for (const char* json :
       {"\"\\\\udcff\"", "\"\\ud83d\\udc80\"", "\"\\u00e4\\n\\udc7f\"", "\"\\udcf", "\\", "\\ud83d\\"}) {
    EXPECT_EQ(MarkEscapes(json), json);
  }
}

}  // namespace
}  // namespace ssl
