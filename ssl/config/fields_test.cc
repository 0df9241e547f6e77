// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/fields.h"

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(DocTest, WithoutRange_AllowsEverything) {
  const Doc doc("Text.");
  EXPECT_EQ(doc.text(), "Text.");
  EXPECT_EQ(doc.Range(), "");
  EXPECT_EQ(doc.Expected("a string"), "a string");
  EXPECT_TRUE(doc.Allows(-1e300));
  EXPECT_TRUE(doc.Allows("x"));
}

TEST(DocTest, Between_IncludesBothEnds) {
  const Doc doc = Doc("Text.").Between(0, 0.5);
  EXPECT_TRUE(doc.Allows(0.0));
  EXPECT_TRUE(doc.Allows(0.5));
  EXPECT_FALSE(doc.Allows(-0.001));
  EXPECT_FALSE(doc.Allows(0.501));
  EXPECT_EQ(doc.Range(), "between 0 and 0.5");
  EXPECT_EQ(doc.Expected("a number"), "a number between 0 and 0.5");
}

TEST(DocTest, AtLeast_IncludesItsEnd_AboveDoesNot) {
  const Doc at_least = Doc("Text.").AtLeast(1).Unit("ms");
  EXPECT_TRUE(at_least.Allows(1.0));
  EXPECT_FALSE(at_least.Allows(0.999));
  EXPECT_EQ(at_least.Range(), "at least 1 (ms)");
  EXPECT_EQ(at_least.Expected("a number"), "a number of at least 1 (ms)");
  const Doc above = Doc("Text.").Above(0);
  EXPECT_TRUE(above.Allows(1e-9));
  EXPECT_FALSE(above.Allows(0.0));
  EXPECT_EQ(above.Range(), "above 0");
  EXPECT_EQ(above.Expected("a number"), "a number above 0");
}

TEST(DocTest, OneOf_AllowsItsNamesExactly) {
  const Doc doc = Doc("Text.").OneOf({"gpu", "cpu"});
  EXPECT_TRUE(doc.Allows("cpu"));
  EXPECT_FALSE(doc.Allows("CPU"));
  EXPECT_FALSE(doc.Allows(""));
  EXPECT_EQ(doc.Range(), "one of 'gpu', 'cpu'");
  EXPECT_EQ(doc.Expected("a string"), "one of 'gpu', 'cpu'");
}

TEST(DocTest, UnitAlone_IsShown) {
  const Doc doc = Doc("Text.").Unit("epochs");
  EXPECT_EQ(doc.Range(), "(epochs)");
  EXPECT_EQ(doc.Expected("an integer"), "an integer (epochs)");
}

TEST(DocTest, LargeBounds_HaveAllTheirDigits) {
  EXPECT_EQ(Doc("Text.").Between(1, 1048576).Range(), "between 1 and 1048576");
  EXPECT_EQ(Doc("Text.").AtLeast(0.1).Range(), "at least 0.1");
}

}  // namespace
}  // namespace ssl
