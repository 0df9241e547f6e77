// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/batch_norm_group.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConfigNode Config(const std::string& settings, const std::string& distributed = "{}") {
  return *ParseYaml(absl::StrCat("DISTRIBUTED: ", distributed, "\nMODEL:\n  SYNC_BN_CONFIG: {", settings, "}\n"),
                    "run.yaml", nullptr);
}

TEST(BatchNormGroupSize, HasVisslsMeaning) {
  const struct {
    const char* settings;
    const char* distributed;
    int64_t ranks;
    int64_t expected;
  } cases[] = {
      {"", "{}", 8, 1},
      {"GROUP_SIZE: 0", "{}", 8, 1},
      {"CONVERT_BN_TO_SYNC_BN: False, GROUP_SIZE: 4", "{}", 8, 1},
      {"CONVERT_BN_TO_SYNC_BN: True", "{NUM_NODES: 2, NUM_PROC_PER_NODE: 4}", 8, 4},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: -1", "{NUM_NODES: 8, NUM_PROC_PER_NODE: 1}", 8, 1},
      {"CONVERT_BN_TO_SYNC_BN: True, SYNC_BN_TYPE: apex", "{NUM_PROC_PER_NODE: 8}", 8, 8},
      {"CONVERT_BN_TO_SYNC_BN: True", "{}", 8, 8},
      {"CONVERT_BN_TO_SYNC_BN: True", "{}", 1, 1},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0", "{NUM_NODES: 2, NUM_PROC_PER_NODE: 4}", 8, 8},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 1", "{}", 8, 1},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 2", "{}", 8, 2},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 3", "{}", 8, 3},
      {"CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 16", "{}", 8, 8},
  };
  for (const auto& row : cases) {
    ASSERT_OK_AND_ASSIGN(const int64_t size, BatchNormGroupSize(Config(row.settings, row.distributed), row.ranks));
    EXPECT_EQ(size, row.expected) << row.settings << " " << row.distributed;
  }
}

TEST(BatchNormGroupSize, NodesOfAnotherWorld_AreAnError) {
  EXPECT_THAT(BatchNormGroupSize(Config("CONVERT_BN_TO_SYNC_BN: True", "{NUM_NODES: 2, NUM_PROC_PER_NODE: 4}"), 6),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:3: config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE is -1, the ranks of a node, in a "
                                 "world of 6 ranks, but config.DISTRIBUTED describes 2 nodes with 4 each")));
  EXPECT_THAT(BatchNormGroupSize(Config("CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: -2"), 6),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("GROUP_SIZE")));
}

// As apex.parallel.create_syncbn_process_group asserts; VISSL's split_world_in_process_groups goes on.
TEST(BatchNormGroupSize, GroupsOfApexThatDoNotDivideTheWorld_AreAnError) {
  constexpr char kApex[] = "CONVERT_BN_TO_SYNC_BN: True, SYNC_BN_TYPE: apex, GROUP_SIZE: ";
  for (const int64_t ranks : {3, 5}) {
    EXPECT_THAT(BatchNormGroupSize(Config(absl::StrCat(kApex, 2)), ranks),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("run.yaml:3: config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE is 2, which does ",
                                                "not divide ", ranks, " ranks, as SYNC_BN_TYPE apex demands"))));
  }
  for (const int64_t size : {0, 1, 2, 4, 8}) EXPECT_OK(BatchNormGroupSize(Config(absl::StrCat(kApex, size)), 4));
}

TEST(MakeBatchNormGroup, AllRanks_HaveACommunicatorOfTheirOwn) {
  EXPECT_OK(ThreadWorld(3, absl::Seconds(30)).Run([](Communicator& world) -> absl::Status {
    const auto group = MakeBatchNormGroup(Config("CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0"), world);
    EXPECT_OK(group);
    EXPECT_EQ((*group)->size(), 3);
    EXPECT_EQ((*group)->rank(), world.rank());
    EXPECT_NE(group->get(), &world);
    EXPECT_OK((*group)->Barrier());
    return world.Barrier();
  }));
}

TEST(MakeBatchNormGroup, SmallerGroups_AreNeighbours) {
  const CapturedLog log;
  EXPECT_OK(ThreadWorld(5, absl::Seconds(30)).Run([](Communicator& world) -> absl::Status {
    const auto group = MakeBatchNormGroup(Config("CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 2"), world);
    EXPECT_OK(group);
    if (world.rank() == 4) {
      EXPECT_EQ(*group, nullptr) << "alone in the last group";
      return absl::OkStatus();
    }
    EXPECT_EQ((*group)->size(), 2);
    EXPECT_EQ((*group)->rank(), world.rank() % 2);
    at::Tensor ranks = at::full({}, world.rank(), at::kLong);
    EXPECT_OK((*group)->AllReduce(ranks, ReduceOp::kSum));
    EXPECT_EQ(ranks.item<int64_t>(), world.rank() < 2 ? 0 + 1 : 2 + 3);
    return absl::OkStatus();
  }));
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("GROUP_SIZE is 2 in a world of 5 ranks: the last group has 1, ")));
}

TEST(MakeBatchNormGroup, RanksOfTheirOwn_NeedNone) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([](Communicator& world) -> absl::Status {
    for (const char* settings : {"", "CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 1"}) {
      const auto group = MakeBatchNormGroup(Config(settings), world);
      EXPECT_OK(group);
      EXPECT_EQ(*group, nullptr);
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
