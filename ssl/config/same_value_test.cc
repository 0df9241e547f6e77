// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/same_value.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ssl/config/flow_text.h"

namespace ssl {
namespace {

ConfigNode Value(absl::string_view text) { return ParseFlowValue(text).value_or(ConfigNode::FromString("no value")); }

TEST(SameValueTest, NumbersAndBooleansCountByValue) {
  EXPECT_TRUE(SameValue(Value("1e-3"), Value("0.001")));
  EXPECT_TRUE(SameValue(Value("1"), Value("1.0")));
  EXPECT_TRUE(SameValue(Value("True"), Value("true")));
  EXPECT_FALSE(SameValue(Value("1"), Value("2")));
  EXPECT_FALSE(SameValue(Value("true"), Value("false")));
}

TEST(SameValueTest, TextsCountByTheirLetters) {
  EXPECT_TRUE(SameValue(Value("sgd"), Value("\"sgd\"")));
  EXPECT_FALSE(SameValue(Value("sgd"), Value("SGD")));
}

TEST(SameValueTest, EmptyValuesAreAlike) {
  for (const char* left : {"null", "\"\"", "[]", "{}"}) {
    for (const char* right : {"null", "\"\"", "[]", "{}"}) EXPECT_TRUE(SameValue(Value(left), Value(right))) << left;
    EXPECT_FALSE(SameValue(Value(left), Value("0"))) << left;
    EXPECT_FALSE(SameValue(Value(left), Value("[0]"))) << left;
  }
}

TEST(SameValueTest, ListsAndMapsCountItemByItem) {
  EXPECT_TRUE(SameValue(Value("[1, [2.0]]"), Value("[1.0, [2]]")));
  EXPECT_FALSE(SameValue(Value("[1, 2]"), Value("[2, 1]")));
  EXPECT_FALSE(SameValue(Value("[1]"), Value("1")));
  EXPECT_TRUE(SameValue(Value("{a: 1, b: {c: x}}"), Value("{b: {c: x}, a: 1.0}")));
  EXPECT_FALSE(SameValue(Value("{a: 1}"), Value("{b: 1}")));
}

}  // namespace
}  // namespace ssl
