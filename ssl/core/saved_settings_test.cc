// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/saved_settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

absl::StatusOr<ConfigNode> Read(absl::string_view text) {
  return NodeOfSaved(text, [](absl::string_view yaml) { return ParseYaml(yaml, "config.json", nullptr); });
}

TEST(SettingText, AnyText_ComesBackAsTheSameValue) {
  for (const char* text :
       {"",    " ",    "a",     "a b", "a, b", "a: b", "a:",     "a:b",        ":a",   "a #b",
        "#a",  "a#b",  "[",     "]",   "[a]",  "{",    "{a: b}", "{000..009}", "'a'",  "it's",
        "\"",  "a\\n", "a\nb",  "\t",  "\x01", "null", "NULL",   "~",          "~/a",  "-",
        "- a", "-a",   "--- a", "?",   "? a",  "&a",   "*a",     "!a",         "|",    ">",
        "%a",  "@a",   "`a",    "<<",  "...",  ".",    "=",      "gr\u00fcn",  "a b ", "http://a/b?c=d&e"}) {
    ConfigNode map = ConfigNode::Map();
    map.Set(absl::StrCat(text, "k"), ConfigNode::FromString(text));
    map.Set(absl::StrCat("k", text), ConfigNode::FromStrings({text, "b", text}));
    for (const ConfigNode& value : {ConfigNode::FromString(text), ConfigNode::FromStrings({text}), map}) {
      const std::string saved = SettingText(value);
      SCOPED_TRACE(saved);
      ASSERT_OK_AND_ASSIGN(const ConfigNode back, Read(saved));
      EXPECT_EQ(SettingText(back), saved);
      EXPECT_EQ(back.entries().size(), value.entries().size());
      EXPECT_EQ(back.items(), value.items());
      EXPECT_EQ(back.text(), value.text());
    }
  }
}

TEST(SettingText, OrdinaryValues_HaveNoQuotes) {
  for (const char* text :
       {"[{name: crop, size: 32}, {name: flip, p: 0.5}]", "/data/my photos", "[]", "true", "1.0e-05"}) {
    EXPECT_EQ(SettingText(Parsed(text)), text);
  }
}

TEST(NodeOfSaved, TextOfAnOlderVersion_IsReadWhereItTells) {
  for (const char* text : {"[{size: 32, name: crop}]", "{b: 1, a: 2}", "a b", "null", "[a, b]", "-5"}) {
    ASSERT_OK_AND_ASSIGN(const ConfigNode back, Read(text));
    EXPECT_TRUE(IsSavedAsWritten(back, text)) << text;
  }
  for (const char* text :
       {"a, b", "[a: b]", "[a #b]", "['a']", "[a [b]]", "[{000..009}.tar]", "gr\xEF\xBF\xBD", "[~]", ""}) {
    EXPECT_FALSE(Read(text).ok()) << text;
  }
  EXPECT_TRUE(IsSavedAsWritten(ConfigNode::FromStrings({"a, b"}), "[a, b]"));
  EXPECT_NE(SettingText(ConfigNode::FromStrings({"a, b"})), "[a, b]");
}

}  // namespace
}  // namespace ssl
