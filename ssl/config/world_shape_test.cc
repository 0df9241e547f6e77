// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/world_shape.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<WorldShape> Read(const std::string& distributed) {
  return ReadWorldShape(*ParseYaml(absl::StrCat("DISTRIBUTED: ", distributed), "run.yaml", nullptr));
}

TEST(WorldShape, CountsNodesTimesRanks) {
  ASSERT_OK_AND_ASSIGN(const WorldShape shape, Read("{NUM_NODES: 8, NUM_PROC_PER_NODE: 4}"));
  EXPECT_EQ(shape.nodes, 8);
  EXPECT_EQ(shape.ranks_per_node, 4);
  EXPECT_EQ(shape.ranks(), 32);
}

TEST(WorldShape, WhatIsMissingCountsAsOne) {
  for (const char* distributed : {"{}", "{NUM_NODES: null}", "{NUM_PROC_PER_NODE: 1}"}) {
    ASSERT_OK_AND_ASSIGN(const WorldShape shape, Read(distributed));
    EXPECT_EQ(shape.ranks(), 1) << distributed;
  }
}

TEST(WorldShape, VirtualRanksAreOfOneNode_WhateverTheirProcesses) {
  for (const char* processes : {"1", "2", "4"}) {
    const std::string distributed = absl::StrCat("{VIRTUAL_RANKS: 4, NUM_NODES: ", processes, "}");
    ASSERT_OK_AND_ASSIGN(const WorldShape shape, Read(distributed));
    EXPECT_EQ(shape.nodes, 1) << distributed;
    EXPECT_EQ(shape.ranks_per_node, 4) << distributed;
  }
  ASSERT_OK_AND_ASSIGN(const WorldShape none, Read("{VIRTUAL_RANKS: 0, NUM_NODES: 3}"));
  EXPECT_EQ(none.nodes, 3);
}

TEST(WorldShape, WrongCounts_AreNamed) {
  for (const char* count : {"0", "-1", "many", "[2]", "1048577", "9223372036854775807"}) {
    EXPECT_THAT(Read(absl::StrCat("{NUM_NODES: ", count, "}")).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.yaml:1: config.DISTRIBUTED.NUM_NODES is ")))
        << count;
  }
  EXPECT_THAT(Read("{VIRTUAL_RANKS: -1}").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected an integer from 0 to")));
}

}  // namespace
}  // namespace ssl
