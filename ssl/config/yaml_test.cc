// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/yaml.h"

#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::IsEmpty;

// The tree, or a scalar with the error that the expectation then shows.
ConfigNode Parse(absl::string_view text) {
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "f.yaml", nullptr);
  return node.ok() ? *node : ConfigNode::Scalar(node.status().ToString());
}

std::string ErrorOf(absl::string_view text) {
  const absl::Status status = ParseYaml(text, "f.yaml", nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 100);
  return std::string(status.message());
}

std::string TextAt(const ConfigNode& root, absl::string_view path) {
  const ConfigNode* node = root.FindPath(path);
  return node == nullptr ? absl::StrCat("no ", path) : node->text();
}

std::string Repeat(absl::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result.append(text.data(), text.size());
  return result;
}

TEST(ParseYamlTest, BlockMapsAndLists_KeepOrderAndLines) {
  const ConfigNode root = Parse("# @package _global_\nconfig:\n  B: 1\n  A:\n    - x\n    - y: 2\n");
  EXPECT_EQ(TextAt(root, "config.A.1.y"), "2");
  EXPECT_EQ(root.Find("config")->entries()[0].first, "B");
  EXPECT_EQ(root.Find("config")->location().ToString(), "f.yaml:2");
  EXPECT_EQ(root.FindPath("config.A")->location().ToString(), "f.yaml:4");
  EXPECT_EQ(root.FindPath("config.A.0")->location().ToString(), "f.yaml:5");
}

TEST(ParseYamlTest, EmptyTexts_AreNull) {
  EXPECT_TRUE(Parse("").is_null());
  EXPECT_TRUE(Parse("# only a comment\n").is_null());
}

TEST(ParseYamlTest, WindowsLinesAndByteOrderMark_AreAccepted) {
  EXPECT_EQ(TextAt(Parse("\xEF\xBB\xBF"
                         "a: 1\r\nb: 2\r\n"),
                   "b"),
            "2");
}

TEST(ParseYamlTest, Aliases_CopyTheirValue) {
  std::vector<std::string> warnings;
  ASSERT_OK_AND_ASSIGN(const ConfigNode root, ParseYaml("a: &x [1, 2]\nb: *x\nc: &y s\nd: *y\n", "f.yaml", &warnings));
  EXPECT_EQ(*root.Find("a"), *root.Find("b"));
  EXPECT_EQ(TextAt(root, "d"), "s");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(ParseYamlTest, WhatAConfigNeverNeeds_IsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a: 1\n---\nb: 2\n", "f.yaml:2: second document, expected one"},
      {"a: !!int 3\n", "f.yaml:1: tag 'tag:yaml.org,2002:int', expected a value without a tag"},
      {"a: !!python/tuple [1]\n", "f.yaml:1: tag 'tag:yaml.org,2002:python/tuple', expected a value without a tag"},
      {"b: &x {c: 1}\na:\n  <<: *x\n", "f.yaml:3: merge key '<<', expected a name"},
      {"[1]: 2\n", "f.yaml:1: a list as a key or an unclosed bracket, expected a text"},
      {"{b: 1}: 2\n", "f.yaml:1: a map as a key or an unclosed bracket, expected a text"},
      {"[1, 2", "f.yaml:1: a list as a key or an unclosed bracket, expected a text"},
      {"null: 2\n", "f.yaml:1: null key, expected a text"},
      {"a: &x b\n*x : 2\n", "f.yaml:2: alias as a key, expected a text"},
      {"a: &x [*x]\n", "f.yaml:1: alias of a value that holds it"},
      {absl::StrCat("\n? ", Repeat("k", 513), "\n: 1\n"), "f.yaml:2: key of 513 bytes, expected at most 512"}};
  for (const auto& [text, message] : cases) EXPECT_EQ(ErrorOf(text), message);
}

TEST(ParseYamlTest, SyntaxErrors_NameTheLine) {
  EXPECT_EQ(ErrorOf("a: 1\nb: [1, 2\n"), "f.yaml:3: no valid YAML: end of sequence flow not found");
  EXPECT_EQ(ErrorOf("a: b: c\n"), "f.yaml:1: no valid YAML: illegal map value");
  EXPECT_THAT(ErrorOf("a: [/data/train-{000..146}.tar]\n"),
              ::testing::EndsWith("; a pattern with braces needs quotes: [\"train-{000..146}.tar\"]"));
  EXPECT_EQ(ErrorOf("a: *gone\n"), "f.yaml:1: no valid YAML: the referenced anchor is not defined");
}

TEST(ParseYamlTest, ControlBytes_AreNoText) {
  using namespace std::string_literals;
  EXPECT_EQ(ErrorOf("a: 1\nb: \x04\nc: 3\n"), "f.yaml:2: byte 0x04 is no text, expected UTF-8");
  EXPECT_EQ(ErrorOf("a\0: 1\n"s), "f.yaml:1: byte 0x00 is no text, expected UTF-8");
}

// Bytes of any kind, with more of those that YAML gives a meaning.
std::string RandomBytes(std::mt19937& random) {
  constexpr absl::string_view kIndicators = "[]{},:-?&*!|>'\"%@#\n\t ";
  std::string bytes;
  for (size_t i = random() % 200; i > 0; --i) {
    const bool is_indicator = random() % 2 == 0;
    bytes.push_back(is_indicator ? kIndicators[random() % kIndicators.size()] : static_cast<char>(32 + random() % 224));
  }
  return bytes;
}

TEST(ParseYamlTest, BinaryJunk_IsATreeOrAnErrorOfTheFile) {
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string bytes = RandomBytes(random);
    const absl::Status status = ParseYaml(bytes, "f.yaml", nullptr).status();
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes;
    EXPECT_EQ(status.message().substr(0, 6), "f.yaml") << bytes;
  }
  EXPECT_GT(refused, 2000);
}

TEST(ParseYamlLimitsTest, TooManyBytes_AreRefused) {
  EXPECT_EQ(ErrorOf(std::string(2 << 20, 'a')), "f.yaml: text has 2097152 bytes, expected at most 1048576");
  EXPECT_TRUE(Parse(std::string(1 << 20, 'a')).is_scalar());
}

TEST(ParseYamlLimitsTest, DepthOf64_IsTheLimit) {
  EXPECT_TRUE(Parse(Repeat("[", 64) + Repeat("]", 64)).is_list());
  EXPECT_EQ(ErrorOf(Repeat("[", 65) + Repeat("]", 65)), "f.yaml:1: document is nested more than 64 levels deep");
}

TEST(ParseYamlLimitsTest, HundredThousandLevels_AreRefusedInEveryNotation) {
  constexpr int kLevels = 100000;
  for (const char* open : {"[", "[\n", "{a: ", "- ", "? ", "[{a: ", "a: [", "&a ["}) {
    ErrorOf(Repeat(open, kLevels));
  }
  EXPECT_EQ(ErrorOf(Repeat("a: [\n", kLevels)), "f.yaml:33: document is nested more than 64 levels deep");
  EXPECT_EQ(ErrorOf(Repeat("- ", kLevels)), "f.yaml:1: document is nested more than 64 levels deep");
}

TEST(ParseYamlLimitsTest, AliasesThatDeepenTheTree_CountTheirLevels) {
  std::string text = "a0: &a0 [1]\n";
  for (int i = 1; i < 100; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  }
  EXPECT_EQ(ErrorOf(text), "f.yaml:64: document is nested more than 64 levels deep");
}

TEST(ParseYamlLimitsTest, Nodes_AreCounted) {
  EXPECT_EQ(ErrorOf("[" + Repeat("1,", 200000) + "]"),
            "f.yaml:1: document has more than 100000 values (aliases count expanded)");
  EXPECT_EQ(Parse("[" + Repeat("1,", 99999) + "]").items().size(), 99999u);
}

TEST(ParseYamlLimitsTest, AliasBomb_IsCountedExpanded) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&text, "*a", i - 1, ", ");
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_EQ(ErrorOf(text), "f.yaml:5: document has more than 100000 values (aliases count expanded)");
}

TEST(ParseYamlLimitsTest, AnchorsOnEveryLevel_AreCountedWithWhatTheyHold) {
  const std::string text = Repeat("&a [", 60) + Repeat("1,", 2000) + Repeat("]", 60);
  EXPECT_EQ(ErrorOf(text), "f.yaml:1: anchors hold more than 100000 values");
}

TEST(WriteYamlTest, LooksAsPeopleWriteIt) {
  const ConfigNode root = Parse(
      "config:\n"
      "  TRANSFORMS:\n"
      "    - {name: A, size: [1, 2]}\n"
      "    - [x, {y: 1}]\n"
      "  NAME: 'resnet'\n"
      "  PORT: \"8080\"\n"
      "  WORD: \"yes\"\n"
      "  EMPTY: []\n"
      "  NONE:\n"
      "  MAP: {}\n"
      "  SCALES: [[0.3, 1], [0.1, 0.3]]\n");
  EXPECT_EQ(WriteYaml(root),
            "config:\n"
            "  TRANSFORMS:\n"
            "    - name: A\n"
            "      size: [1, 2]\n"
            "    -\n"
            "      - x\n"
            "      - y: 1\n"
            "  NAME: resnet\n"
            "  PORT: \"8080\"\n"
            "  WORD: \"yes\"\n"
            "  EMPTY: []\n"
            "  NONE: null\n"
            "  MAP: {}\n"
            "  SCALES: [[0.3, 1], [0.1, 0.3]]\n");
}

std::vector<std::string> AwkwardTexts() {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "a b",
                                    " a",
                                    "a ",
                                    "null",
                                    "Null",
                                    "~",
                                    "true",
                                    "No",
                                    "- a",
                                    "-",
                                    "--",
                                    "---",
                                    "...",
                                    "..",
                                    "a: b",
                                    "a:",
                                    ":a",
                                    "# c",
                                    "a #c",
                                    "[",
                                    "]",
                                    "{a}",
                                    ",",
                                    "&a",
                                    "*a",
                                    "!a",
                                    "!!str x",
                                    "|",
                                    ">",
                                    "%YAML",
                                    "@a",
                                    "`a`",
                                    "'",
                                    "\"",
                                    "\\",
                                    "\\n",
                                    "a\nb",
                                    "\n",
                                    "a\tb",
                                    "\t",
                                    "\r\n",
                                    "<<",
                                    "?",
                                    "? a",
                                    "=",
                                    "1e-5",
                                    "-1",
                                    "-.5",
                                    "+1",
                                    "0x10",
                                    "16_384",
                                    "1:30",
                                    "2001-01-01",
                                    "/data/train",
                                    "C:\\x",
                                    "http://a.b/c?d=e&f",
                                    "gr\xc3\xbc\xc3\x9f",
                                    "\xe6\x97\xa5\xe6\x9c\xac",
                                    "\xe2\x80\xa8",
                                    "\xc2\x85",
                                    "\xf0\x9f\x98\x80",
                                    "\xef\xbb\xbf"
                                    "x",
                                    "$HOME",
                                    "${a.b}",
                                    "a,b",
                                    "[1, 2]",
                                    "NULL",
                                    "y",
                                    "\x7f",
                                    std::string(2000, 'x') + " y"};
  for (int byte = 0; byte < 0x20; ++byte) {
    texts.push_back(absl::StrCat("a", std::string(1, static_cast<char>(byte)), "b"));
  }
  return texts;
}

TEST(WriteYamlTest, AwkwardStrings_ReadBackAsValueItemAndRoot) {
  for (const std::string& text : AwkwardTexts()) {
    for (const bool quoted : {true, false}) {
      const ConfigNode scalar = ConfigNode::Scalar(text, quoted);
      ConfigNode root = ConfigNode::Map();
      root.Set("value", scalar);
      ConfigNode list = ConfigNode::List();
      list.Append(scalar);
      root.Set("list", list);
      ConfigNode item = ConfigNode::Map();
      item.Set("first", scalar);
      item.Set("second", list);
      list.Append(item);
      root.Set("block", list);
      EXPECT_EQ(Parse(WriteYaml(root)), root) << WriteYaml(root);
      EXPECT_EQ(Parse(WriteYaml(scalar)), scalar) << WriteYaml(scalar);
    }
  }
}

TEST(WriteYamlTest, AwkwardKeys_ReadBack) {
  for (const std::string& text : AwkwardTexts()) {
    if (text.size() > static_cast<size_t>(kMaxYamlKeyBytes)) continue;
    ConfigNode inner = ConfigNode::Map();
    inner.Set(text, ConfigNode::FromInt(1));
    ConfigNode root = ConfigNode::Map();
    root.Set("outer", inner);
    root.Set(text, ConfigNode::Null());
    EXPECT_EQ(Parse(WriteYaml(root)), root) << WriteYaml(root);
  }
}

// Escapes make a key up to four times as long; readers find the colon of a plain one within 1,024 characters only.
TEST(WriteYamlTest, LongestKeysOfEscapedCharacters_ReadBack) {
  for (const absl::string_view character : {"\r", "\n", "\"", "\xc3\xa9"}) {
    for (const size_t size : {size_t{200}, size_t{300}, static_cast<size_t>(kMaxYamlKeyBytes)}) {
      std::string key;
      while (key.size() + character.size() <= size) absl::StrAppend(&key, character);
      ConfigNode inner = ConfigNode::Map();
      inner.Set(key, ConfigNode::FromInt(1));
      inner.Set("short", ConfigNode::FromInt(2));
      ConfigNode items = ConfigNode::List();
      items.Append(inner);
      ConfigNode root = ConfigNode::Map();
      root.Set(key, inner);
      root.Set("items", items);
      EXPECT_EQ(Parse(WriteYaml(root)), root) << WriteYaml(root);
    }
  }
}

TEST(WriteYamlTest, NestedEmptiesAndDepthOf64_ReadBack) {
  ConfigNode deep = ConfigNode::Map();
  for (int i = 0; i < 63; ++i) {
    ConfigNode outer = i % 2 == 0 ? ConfigNode::List() : ConfigNode::Map();
    if (outer.is_list()) {
      outer.Append(deep);
      outer.Append(ConfigNode::List());
    } else {
      outer.Set("k", deep);
      outer.Set("empty", ConfigNode::Map());
    }
    deep = outer;
  }
  EXPECT_EQ(Parse(WriteYaml(deep)), deep);
}

// Texts put together at random from the pieces that mean something to YAML.
std::string RandomText(std::mt19937& random) {
  static constexpr absl::string_view kPieces[] = {
      "a",  "b: ", "- ", "? ", ": ", "[",   "]",    "{",    "}",        ", ",  "\n",  "  ", "#",
      "\"", "'",   "|",  ">",  "&x", "*x ", "!t ",  "---",  "null",     "1",   "\\x", "\t", "%",
      "\r", "<<",  "~",  "@",  "`",  "\n ", "e:\n", "\xff", "\xc3\xa9", "...", "- -", "{}", "[]"};
  std::string text;
  const int pieces = static_cast<int>(random() % 25);
  for (int i = 0; i < pieces; ++i) {
    const absl::string_view piece = kPieces[random() % std::size(kPieces)];
    text.append(piece.data(), piece.size());
  }
  return text;
}

TEST(WriteYamlTest, WhateverParses_ReadsBackEqual_AndTheRestIsAnError) {
  std::mt19937 random(7);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = RandomText(random);
    const absl::StatusOr<ConfigNode> node = ParseYaml(text, "f.yaml", nullptr);
    if (!node.ok()) {
      EXPECT_EQ(node.status().code(), absl::StatusCode::kInvalidArgument) << text;
      EXPECT_EQ(node.status().message().substr(0, 6), "f.yaml") << text;
      continue;
    }
    ++parsed;
    const absl::StatusOr<ConfigNode> back = ParseYaml(WriteYaml(*node), "back", nullptr);
    ASSERT_OK(back) << text << "\nwritten as\n" << WriteYaml(*node);
    EXPECT_EQ(*back, *node) << text << "\nwritten as\n" << WriteYaml(*node);
  }
  EXPECT_GT(parsed, 2000);
}

TEST(ParseYamlTest, TabAtTheBeginningOfALine_IsNamed) {
  EXPECT_THAT(
      ParseYaml("a:\n\tb: 1\n", "tab.yaml", nullptr).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, ::testing::AllOf(::testing::HasSubstr("tab.yaml:2: no valid YAML: "),
                                                                    ::testing::HasSubstr("begins with a tab"))));
}

}  // namespace
}  // namespace ssl
