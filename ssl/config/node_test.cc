// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/node.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

ConfigNode At(std::string text) { return ConfigNode::Scalar(std::move(text), false, {"a.yaml", 7}); }

TEST(SourceLocationTest, PrintsFileAndLineAsFarAsKnown) {
  EXPECT_EQ((SourceLocation{"a.yaml", 3}).ToString(), "a.yaml:3");
  EXPECT_EQ((SourceLocation{"a.yaml", 0}).ToString(), "a.yaml");
  EXPECT_EQ(SourceLocation().ToString(), "built in");
}

TEST(ConfigNodeTest, Default_IsNull) {
  EXPECT_TRUE(ConfigNode().is_null());
  EXPECT_EQ(ConfigNode().kind(), ConfigNode::Kind::kNull);
}

TEST(ConfigNodeTest, AsBool_TakesWordsInAnyCase) {
  for (const char* text : {"true", "True", "TRUE", "yes", "On"}) {
    ASSERT_OK_AND_ASSIGN(const bool value, At(text).AsBool());
    EXPECT_TRUE(value) << text;
  }
  for (const char* text : {"false", "False", "no", "OFF"}) {
    ASSERT_OK_AND_ASSIGN(const bool value, At(text).AsBool());
    EXPECT_FALSE(value) << text;
  }
}

TEST(ConfigNodeTest, AsInt_TakesSignsAndUnderscores) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"0", 0},
      {"-1", -1},
      {"+3", 3},
      {"16_384", 16384},
      {"1_000_000", 1000000},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()}};
  for (const auto& [text, expected] : cases) {
    ASSERT_OK_AND_ASSIGN(const int64_t value, At(text).AsInt());
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(ConfigNodeTest, AsInt_RefusesEverythingElse) {
  for (const char* text :
       {"", "a", "1.0", "1e3", "_1", "1_", "1__0", "9223372036854775808", "010", "0x10", " 1", "1 ", "--1", "+"}) {
    EXPECT_EQ(At(text).AsInt().status().message(), "a.yaml:7: '" + std::string(text) + "' is not an integer");
  }
}

TEST(ConfigNodeTest, AsDouble_TakesEveryDecimalForm) {
  const std::vector<std::pair<std::string, double>> cases = {{"1", 1},      {"1e-5", 1e-5},     {"1e-08", 1e-8},
                                                             {".25", 0.25}, {"1.", 1},          {"-0.5E2", -50},
                                                             {"+2.5", 2.5}, {"16_384", 16384.}, {"1_0.5", 10.5}};
  for (const auto& [text, expected] : cases) {
    ASSERT_OK_AND_ASSIGN(const double value, At(text).AsDouble());
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(ConfigNodeTest, AsDouble_RefusesWhatIsNoFiniteNumber) {
  for (const char* text : {"", "x", "inf", "-inf", ".inf", "nan", ".nan", "1e999", "0x10", "1,5", "e5", ".", "1_.5"}) {
    EXPECT_EQ(At(text).AsDouble().status().message(), "a.yaml:7: '" + std::string(text) + "' is not a number");
  }
}

TEST(ConfigNodeTest, Conversions_OfOtherKindsNameTheKind) {
  EXPECT_EQ(ConfigNode::List({"a.yaml", 2}).AsBool().status(),
            absl::InvalidArgumentError("a.yaml:2: a list is not true or false"));
  EXPECT_EQ(ConfigNode::Map({"a.yaml", 2}).AsInt().status(),
            absl::InvalidArgumentError("a.yaml:2: a map is not an integer"));
  EXPECT_EQ(ConfigNode::Null({"a.yaml", 2}).AsDouble().status(),
            absl::InvalidArgumentError("a.yaml:2: null is not a number"));
  EXPECT_EQ(ConfigNode::Null().AsString().status(), absl::InvalidArgumentError("built in: null is not a string"));
  EXPECT_EQ(At("maybe").AsBool().status(), absl::InvalidArgumentError("a.yaml:7: 'maybe' is not true or false"));
}

TEST(ConfigNodeTest, Describe_ShowsTheBeginningOfALongText) {
  const std::string text(200, 'a');
  EXPECT_EQ(ConfigNode::FromString(text).Describe(), "'" + text + "'");
  EXPECT_EQ(ConfigNode::FromString(text + "b").Describe(), "'" + text + "...'");
  // The second byte of a letter would be the first one left out.
  EXPECT_EQ(ConfigNode::FromString(text.substr(1) + "\xC3\xA4xyz").Describe(), "'" + text.substr(1) + "...'");
}

TEST(ConfigNodeTest, AsString_GivesTheTextOfAnyScalar) {
  ASSERT_OK_AND_ASSIGN(const std::string text, At("1e-5").AsString());
  EXPECT_EQ(text, "1e-5");
}

TEST(ConfigNodeTest, FromDouble_ReadsBackExactlyAndKeepsAPoint) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 1.7976931348623157e308, -0.0, 2.0, 5e-324}) {
    const ConfigNode node = ConfigNode::FromDouble(value);
    ASSERT_OK_AND_ASSIGN(const double back, node.AsDouble());
    EXPECT_EQ(back, value);
    EXPECT_THAT(node.text(), HasSubstr("."));
  }
  EXPECT_EQ(ConfigNode::FromDouble(1e-5).text(), "1.0e-05");
  EXPECT_EQ(ConfigNode::FromDouble(2).text(), "2.0");
  EXPECT_EQ(ConfigNode::FromDouble(0.1).text(), "0.1");
}

TEST(ConfigNodeTest, OtherConstructors_ReadBack) {
  EXPECT_EQ(ConfigNode::FromInt(-5).text(), "-5");
  EXPECT_EQ(ConfigNode::FromBool(true).text(), "true");
  EXPECT_EQ(ConfigNode::FromBool(false).text(), "false");
  EXPECT_TRUE(ConfigNode::FromString("null").quoted());
  EXPECT_EQ(ConfigNode::FromInts({1, 2}).items()[1].text(), "2");
  EXPECT_EQ(ConfigNode::FromDoubles({0.5}).items()[0].text(), "0.5");
  EXPECT_EQ(ConfigNode::FromStrings({"a"}).items()[0].text(), "a");
}

TEST(ConfigNodeTest, Set_ReplacesInPlaceAndAddsLast) {
  ConfigNode map = ConfigNode::Map();
  map.Set("b", ConfigNode::FromInt(1));
  map.Set("a", ConfigNode::FromInt(2));
  map.Set("b", ConfigNode::FromInt(3));
  ASSERT_EQ(map.entries().size(), 2u);
  EXPECT_EQ(map.entries()[0].first, "b");
  EXPECT_EQ(map.entries()[0].second.text(), "3");
  EXPECT_EQ(map.entries()[1].first, "a");
}

TEST(ConfigNodeTest, SetAndAppend_MakeTheKindTheyNeed) {
  ConfigNode scalar = ConfigNode::FromInt(1);
  scalar.Set("a", ConfigNode::FromInt(2));
  EXPECT_TRUE(scalar.is_map());
  EXPECT_EQ(scalar.text(), "");
  scalar.Append(ConfigNode::FromInt(3));
  EXPECT_TRUE(scalar.is_list());
  EXPECT_TRUE(scalar.entries().empty());
}

TEST(ConfigNodeTest, FindPath_WalksMapsAndLists) {
  ConfigNode root = ConfigNode::Map();
  root.SetPath("A.B", ConfigNode::FromInts({4, 5}));
  ASSERT_NE(root.FindPath("A.B.1"), nullptr);
  EXPECT_EQ(root.FindPath("A.B.1")->text(), "5");
  EXPECT_EQ(root.FindPath(""), &root);
  for (const char* path : {"A.B.2", "A.B.-1", "A.B.x", "A.B.1.x", "A.C", "B", "A.", ".A", "A..B"}) {
    EXPECT_EQ(root.FindPath(path), nullptr) << path;
  }
}

TEST(ConfigNodeTest, SetPath_MakesMapsAndEntersLists) {
  ConfigNode root;
  root.SetPath("A.B.C", ConfigNode::FromInt(1));
  root.SetPath("A.L", ConfigNode::FromInts({4, 5}));
  root.SetPath("A.L.0", ConfigNode::FromInt(9));
  root.SetPath("A.B.C.D", ConfigNode::FromInt(2));
  EXPECT_EQ(root.FindPath("A.L.0")->text(), "9");
  EXPECT_EQ(root.FindPath("A.B.C.D")->text(), "2");
  EXPECT_TRUE(root.FindPath("A.L")->is_list());
  root.SetPath("", ConfigNode::FromInt(3));
  EXPECT_EQ(root, ConfigNode::FromInt(3));
}

TEST(ConfigNodeTest, FindMutable_ChangesTheTree) {
  ConfigNode root = ConfigNode::Map();
  root.Set("a", ConfigNode::FromInt(1));
  *root.FindMutable("a") = ConfigNode::FromInt(2);
  EXPECT_EQ(root.Find("a")->text(), "2");
  EXPECT_EQ(root.FindMutable("b"), nullptr);
}

TEST(ConfigNodeTest, Relocate_ReachesEveryChild) {
  ConfigNode root = ConfigNode::Map();
  root.SetPath("a.b", ConfigNode::FromInts({1}));
  root.Relocate({"command line", 4});
  EXPECT_EQ(root.FindPath("a.b.0")->location().ToString(), "command line:4");
  EXPECT_EQ(root.location().ToString(), "command line:4");
}

TEST(ConfigNodeTest, Equality_IsOfValuesAndOrder) {
  EXPECT_EQ(ConfigNode::Scalar("a", true, {"x", 1}), ConfigNode::Scalar("a", false, {"y", 2}));
  EXPECT_NE(ConfigNode::Scalar("null"), ConfigNode::Null());
  EXPECT_NE(ConfigNode::List(), ConfigNode::Map());
  EXPECT_NE(ConfigNode::FromInts({1, 2}), ConfigNode::FromInts({2, 1}));
  ConfigNode first = ConfigNode::Map();
  first.Set("a", ConfigNode::FromInt(1));
  ConfigNode second = first;
  second.Set("a", ConfigNode::FromInt(2));
  EXPECT_NE(first, second);
  EXPECT_EQ(first.Find("a")->text(), "1");
}

TEST(JoinPathTest, LeavesOutTheDotOfAnEmptyPath) {
  EXPECT_EQ(JoinPath("", "a"), "a");
  EXPECT_EQ(JoinPath("a.b", "c"), "a.b.c");
}

}  // namespace
}  // namespace ssl
