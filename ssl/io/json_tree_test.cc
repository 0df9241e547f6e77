// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/json_tree.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kText[] = R"({
 "nothing": null,
 "yes": true,
 "most": 18446744073709551615,
 "below": -3.5,
 "half": 0.5,
 "text": "a \"b\"\n\u0001 é",
 "empty": {},
 "none": [],
 "list": [
  1,
  [
   "x"
  ],
  {
   "y": false
  }
 ]
}
)";

TEST(JsonTreeTest, WhatItWrites_ReadsBackAndLooksTheSame) {
  ASSERT_OK_AND_ASSIGN(const JsonTree tree, ParseJson(kText));
  EXPECT_EQ(WriteJson(tree), kText);
}

TEST(JsonTreeTest, ValuesHaveTheirKinds) {
  ASSERT_OK_AND_ASSIGN(const JsonTree tree, ParseJson(kText));
  EXPECT_EQ(tree.Find("yes")->boolean, true);
  EXPECT_EQ(tree.Find("most")->count, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(tree.Find("below")->number, -3.5);
  EXPECT_EQ(tree.Find("text")->text, "a \"b\"\n\x01 é");
  EXPECT_EQ(tree.Find("list")->list.size(), 3u);
  EXPECT_EQ(tree.Find("other"), nullptr);
  EXPECT_EQ(tree.Find("yes")->Find("below"), nullptr);
}

TEST(JsonTreeTest, WhatIsNotJson_IsRefusedWithItsPlace) {
  EXPECT_THAT(ParseJson("{\"a\": 1,\n x}"),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("line 2"), HasSubstr("column 2"))));
  for (const char* text : {"", "{", "[1,]", "{} {}", "'a'", "\"\xff\"", "nul", "01", "[1e999]"}) {
    EXPECT_THAT(ParseJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(JsonTreeTest, AKeyThatOccursTwice_IsRefusedByName) {
  EXPECT_THAT(ParseJson(R"({"a": 1, "b": {"c": 2, "d": 3, "c": 4}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "key 'c' occurs twice"));
  EXPECT_OK(ParseJson(R"([{"a": 1}, {"a": 2}])"));
}

TEST(JsonTreeTest, DepthAndValues_AreLimited) {
  const std::string deepest = absl::StrCat(std::string(kMaxJsonDepth, '['), std::string(kMaxJsonDepth, ']'));
  EXPECT_OK(ParseJson(deepest));
  EXPECT_THAT(ParseJson(absl::StrCat("[", deepest, "]")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deeper than 16")));
  EXPECT_THAT(ParseJson(std::string(1000000, '[')), StatusIs(absl::StatusCode::kInvalidArgument));
  std::string many = "[0";
  for (int64_t i = 2; i < kMaxJsonValues; ++i) many += ",0";  // with the list itself, as many as are allowed
  EXPECT_OK(ParseJson(absl::StrCat(many, "]")));
  EXPECT_THAT(ParseJson(absl::StrCat(many, ",0]")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 262144 values")));
}

TEST(JsonTreeTest, BytesThatAreNoText_AreReplaced) {
  EXPECT_EQ(WriteJson(JsonTree(std::string("a\xff"))), "\"a\xef\xbf\xbd\"\n");
}

}  // namespace
}  // namespace ssl
