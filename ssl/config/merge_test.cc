// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/merge.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MergeIntoTest, Maps_MergeDeep_NewKeysComeLast) {
  ConfigNode base = ConfigNode::Map();
  base.SetPath("a.x", ConfigNode::FromInt(1));
  base.SetPath("a.y", ConfigNode::FromInt(2));
  ConfigNode overlay = ConfigNode::Map();
  overlay.SetPath("a.z", ConfigNode::FromInt(4));
  overlay.SetPath("a.x", ConfigNode::FromInt(3));

  MergeInto(&base, overlay);

  const ConfigNode& a = *base.Find("a");
  ASSERT_EQ(a.entries().size(), 3u);
  EXPECT_EQ(a.entries()[0].second.text(), "3");
  EXPECT_EQ(a.entries()[1].second.text(), "2");
  EXPECT_EQ(a.entries()[2].first, "z");
}

TEST(MergeIntoTest, ListsAndOtherKinds_ReplaceWhole) {
  ConfigNode base = ConfigNode::Map();
  base.Set("list", ConfigNode::FromInts({1, 2, 3}));
  base.SetPath("map.a", ConfigNode::FromInt(1));
  base.Set("scalar", ConfigNode::FromInt(1));
  ConfigNode overlay = ConfigNode::Map();
  overlay.Set("list", ConfigNode::FromInts({9}));
  overlay.Set("map", ConfigNode::Null());
  overlay.SetPath("scalar.b", ConfigNode::FromInt(2));

  MergeInto(&base, overlay);

  EXPECT_EQ(base, overlay);
}

TEST(MergeIntoTest, Value_BringsItsLocation_FreeFormStays) {
  ConfigNode base = ConfigNode::Scalar("1", false, {"defaults", 1});
  base.set_free_form(true);
  MergeInto(&base, ConfigNode::Scalar("2", false, {"user.yaml", 5}));
  EXPECT_EQ(base.text(), "2");
  EXPECT_EQ(base.location().ToString(), "user.yaml:5");
  EXPECT_TRUE(base.free_form());
}

TEST(MergeIntoTest, WideMaps_MergeEveryKey) {
  ConfigNode base = ConfigNode::Map();
  ConfigNode overlay = ConfigNode::Map();
  for (int i = 0; i < 30000; ++i) {
    base.mutable_entries()->emplace_back(absl::StrCat("k", i), ConfigNode::FromInt(i));
    overlay.mutable_entries()->emplace_back(absl::StrCat("k", i + 15000), ConfigNode::FromInt(-i));
  }
  MergeInto(&base, overlay);
  ASSERT_EQ(base.entries().size(), 45000u);
  EXPECT_EQ(base.entries()[14999].second.text(), "14999");
  EXPECT_EQ(base.entries()[15001].second.text(), "-1");
  EXPECT_EQ(base.entries()[44999].second.text(), "-29999");
}

TEST(CommonKeysTest, AreThePathsWhereOneTreeHasAValue) {
  ConfigNode left = ConfigNode::Map();
  left.SetPath("A.B", ConfigNode::FromInt(1));
  left.SetPath("A.C.D", ConfigNode::FromInt(1));
  left.SetPath("F", ConfigNode::Map());
  left.FindMutable("F")->set_free_form(true);
  ConfigNode right = ConfigNode::Map();
  right.SetPath("A.E", ConfigNode::FromInt(1));
  EXPECT_THAT(CommonKeys(left, right), IsEmpty());
  right.SetPath("A.B", ConfigNode::FromInt(2));
  right.SetPath("A.C", ConfigNode::FromInt(2));
  right.SetPath("F.x", ConfigNode::FromInt(2));
  EXPECT_THAT(CommonKeys(left, right), ElementsAre("A.B", "A.C", "F"));
  EXPECT_THAT(CommonKeys(right, left), ElementsAre("A.B", "A.C", "F"));
}

}  // namespace
}  // namespace ssl
