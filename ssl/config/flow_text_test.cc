// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/flow_text.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

TEST(SplitTopLevelTest, SplitsOutsideQuotesAndBrackets) {
  EXPECT_THAT(SplitTopLevel("1,2", ','), ElementsAre("1", "2"));
  EXPECT_THAT(SplitTopLevel(" 1 ,\t2", ','), ElementsAre("1", "2"));
  EXPECT_THAT(SplitTopLevel("[1,2],{a: [3,4], b: 5}", ','), ElementsAre("[1,2]", "{a: [3,4], b: 5}"));
  EXPECT_THAT(SplitTopLevel("\"a,b\",'c,d'", ','), ElementsAre("\"a,b\"", "'c,d'"));
  EXPECT_THAT(SplitTopLevel("\"a\\\",b\",c", ','), ElementsAre("\"a\\\",b\"", "c"));
  EXPECT_THAT(SplitTopLevel("'it''s, so',c", ','), ElementsAre("'it''s, so'", "c"));
  EXPECT_THAT(SplitTopLevel("[\"],\"],c", ','), ElementsAre("[\"],\"]", "c"));
  EXPECT_THAT(SplitTopLevel("\"a:b\": c", ':'), ElementsAre("\"a:b\"", "c"));
}

TEST(SplitTopLevelTest, QuoteInsideAWord_OpensNothing) {
  EXPECT_THAT(SplitTopLevel("it's,that's", ','), ElementsAre("it's", "that's"));
}

TEST(SplitTopLevelTest, EmptyPiecesStay_AndWhatIsNotClosedIsOnePiece) {
  EXPECT_THAT(SplitTopLevel("", ','), ElementsAre(""));
  EXPECT_THAT(SplitTopLevel(",a,", ','), ElementsAre("", "a", ""));
  EXPECT_THAT(SplitTopLevel("[a,b", ','), ElementsAre("[a,b"));
  EXPECT_THAT(SplitTopLevel("\"a,b", ','), ElementsAre("\"a,b"));
  EXPECT_THAT(SplitTopLevel("\"a,b\\", ','), ElementsAre("\"a,b\\"));
  EXPECT_THAT(SplitTopLevel("a],b", ','), ElementsAre("a]", "b"));
}

// yaml-cpp reads the same texts to the same trees.
TEST(ParseFlowValueTest, AgreesWithTheYamlParser) {
  for (const char* text : {"null",
                           "~",
                           "false",
                           "True",
                           "3",
                           "-1",
                           "1e-5",
                           "tcp",
                           "01",
                           "\"tcp\"",
                           "'it''s'",
                           "\"a\\\"b\\\\c\\n\\td\"",
                           "\"null\"",
                           "''",
                           "[]",
                           "{}",
                           "[0, 1]",
                           "[0, 1,]",
                           "[.9,.999]",
                           "[a b, 'c, d', \"e\"]",
                           "[[1, [2]], []]",
                           "{a: 1, b: {c: [x]}}",
                           "{\"dims\": [2048, 1000], 'k': null,}",
                           "[[mlp, {dims: [2048, 1000]}]]",
                           "http://x:1/y",
                           "{url: http://x/y}",
                           "please specify teacher model weights",
                           "it's",
                           "[null, ~]"}) {
    ASSERT_OK_AND_ASSIGN(const ConfigNode value, ParseFlowValue(text));
    ASSERT_OK_AND_ASSIGN(const ConfigNode expected, ParseYaml(text, "f.yaml", nullptr));
    EXPECT_EQ(value, expected) << text;
    EXPECT_EQ(value.quoted(), expected.quoted()) << text;
  }
  ASSERT_OK_AND_ASSIGN(const ConfigNode nothing, ParseFlowValue("  "));
  EXPECT_TRUE(nothing.is_null());
}

TEST(ParseFlowValueTest, WhatIsNoFlowValue_IsQuoted) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1, 2", "[1, 2"}, {"[", "["},       {"[1,,2]", "[1,,2]"},   {"[1]]", "1]"},
      {"[1],[2]", "1]"},  {"{a}", "a"},     {"{a: 1", "{a: 1"},     {"{[1]: 2}", "[1]: 2"},
      {"\"a", "\"a"},     {"'", "'"},       {"'a' b", "'a' b"},     {"a, b", "a, b"},
      {"1]", "1]"},       {"{: 1}", ": 1"}, {"\"a\\\"", "\"a\\\""}, {"[a\"b]", "a\"b"}};
  for (const auto& [text, culprit] : cases) {
    EXPECT_EQ(ParseFlowValue(text).status(),
              absl::InvalidArgumentError(absl::StrCat("'", culprit, "' is no flow value")))
        << text;
  }
}

}  // namespace
}  // namespace ssl
