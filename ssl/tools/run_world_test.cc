// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_world.h"

#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

EnvironmentVariable In(const Variables& variables) {
  return [variables](absl::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// Rank 3 of 4, the second of two on its host.
Variables Rank() {
  return {{"RANK", "3"},           {"WORLD_SIZE", "4"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "29500"}};
}

WorldOptions Keys(int64_t nodes, int64_t ranks_per_node) {
  WorldOptions options;
  options.nodes = nodes;
  options.ranks_per_node = ranks_per_node;
  return options;
}

auto Refuses(const std::string& one, const std::string& other) {
  return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(one), HasSubstr(other)));
}

TEST(RunWorldTest, WithoutAnythingItIsOneProcess) {
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({}, {}, In({})));
  EXPECT_FALSE(world.launches);
  EXPECT_EQ(world.shape().ranks(), 1);
  EXPECT_EQ(Describe(world), "one process");
}

TEST(RunWorldTest, TheEnvironmentGoesBeforeTheKeys) {
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({}, Keys(8, 8), In(Rank())));
  EXPECT_FALSE(world.launches);
  EXPECT_EQ(world.place.rank, 3);
  EXPECT_EQ(world.shape().nodes, 2);
  EXPECT_EQ(world.shape().ranks_per_node, 2);
  EXPECT_EQ(Describe(world), "rank 3 of 4 (torchrun), 1 of the 2 on this host; ranks meet at gpu1:29500");
}

TEST(RunWorldTest, KeysStartRanks) {
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({}, Keys(1, 4), In({})));
  EXPECT_TRUE(world.launches);
  EXPECT_EQ(world.shape().ranks_per_node, 4);
  EXPECT_EQ(Describe(world), "this command starts 4 ranks, 0 to 3 of 4; they meet at a free port of this host");
}

TEST(RunWorldTest, TheFlagGoesBeforeTheKeys) {
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({"local:2"}, Keys(8, 8), In({})));
  EXPECT_TRUE(world.launches);
  EXPECT_EQ(world.place.size, 2);
  EXPECT_EQ(world.shape().nodes, 1);
  ASSERT_OK_AND_ASSIGN(const RunWorld one, FindRunWorld({"local:1", -1, 3}, {}, In({})));
  EXPECT_TRUE(one.launches);
  EXPECT_EQ(Describe(one), "this command starts 1 rank, 0 to 0 of 1; they meet at a free port of this host");
}

TEST(RunWorldTest, ASecondHostStartsItsShare) {
  WorldOptions options = Keys(2, 4);
  options.run_id = "gpu1:40050";
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({"", 1}, options, In({})));
  EXPECT_TRUE(world.launches);
  EXPECT_EQ(Describe(world), "this command starts 4 ranks, 4 to 7 of 8; they meet at gpu1:40050");
  EXPECT_THAT(
      FindRunWorld({}, Keys(2, 4), In({})),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("add config.DISTRIBUTED.NUM_NODES=1 to run on this")));
}

TEST(RunWorldTest, ARankHasTheFlagsOfTheCommandThatStartedIt) {
  Variables variables = Rank();
  EXPECT_OK(FindRunWorld({"", 1}, {}, In(variables)));
  variables["WORLD_SIZE"] = "2";
  variables["RANK"] = "1";
  EXPECT_THAT(FindRunWorld({"local:2", -1, 5}, {}, In(variables)), Refuses("--restarts=5", "by torchrun it is rank"));
  variables["SSL_LAUNCHER"] = "1";
  EXPECT_OK(FindRunWorld({"local:2", -1, 5}, {}, In(variables)));
}

TEST(RunWorldTest, FlagsThatContradictTheEnvironmentAreRefused) {
  EXPECT_THAT(FindRunWorld({"local:4"}, {}, In(Rank())), Refuses("--launch=local:4", "rank 3 of 4, with 2 on this"));
  EXPECT_THAT(FindRunWorld({"local:2"}, {}, In(Rank())), Refuses("--launch=local:2", "by torchrun it is rank"));
  EXPECT_THAT(FindRunWorld({"", 0}, {}, In(Rank())), Refuses("--node_id=0", "leave out one of the two"));
  EXPECT_THAT(FindRunWorld({"", -1, 3}, {}, In(Rank())), Refuses("--restarts=3", "leave out one of the two"));
}

TEST(RunWorldTest, WrongFlagsAreRefused) {
  for (const char* launch : {"local", "local:", "local:0", "local:x", "slurm:2", "2"}) {
    EXPECT_THAT(FindRunWorld({launch}, {}, In({})), Refuses(launch, "expected local:N"));
  }
  EXPECT_THAT(FindRunWorld({"", -1, 2}, {}, In({})), Refuses("--restarts=2 without ranks", "--launch=local:1"));
  EXPECT_THAT(FindRunWorld({"local:2", -1, -1}, {}, In({})), Refuses("--restarts is -1", "expected 0 or more"));
  WorldOptions hosts = Keys(2, 2);
  hosts.run_id = "localhost:3333";
  EXPECT_THAT(FindRunWorld({"", 0, 2}, hosts, In({})), Refuses("--restarts is 2, expected 0", "NUM_NODES is 2"));
}

// OpenMP would take its default in silence, of each rank all cores.
TEST(RunWorldTest, AWrongNumberOfThreadsIsRefused) {
  for (const char* threads : {"abc", "0", "-1", "2,", "2x", "4 2"}) {
    EXPECT_THAT(FindRunWorld({}, {}, In({{"OMP_NUM_THREADS", threads}})),
                Refuses(absl::StrCat("OMP_NUM_THREADS is '", threads, "'"), "expected a number of threads, 1 or more"));
  }
  for (const char* threads : {"", "1", "16", "4,2", " 3 "}) {
    EXPECT_OK(FindRunWorld({}, {}, In({{"OMP_NUM_THREADS", threads}}))) << threads;
  }
}

TEST(RunWorldTest, AHostOfANumberIsOneOfSeveral) {
  EXPECT_THAT(FindRunWorld({"", 1}, {}, In({})), Refuses("--node_id is 1", "NUM_NODES"));
  EXPECT_THAT(FindRunWorld({"", 2}, Keys(1, 4), In({})), Refuses("number of this node is 2", "NUM_NODES is 1"));
  EXPECT_OK(FindRunWorld({"", 0}, {}, In({})));
}

TEST(RunWorldTest, HostsWithUnequalSharesCountAsHostsOfOneRank) {
  Variables variables = Rank();
  variables["WORLD_SIZE"] = "5";
  ASSERT_OK_AND_ASSIGN(const RunWorld world, FindRunWorld({}, {}, In(variables)));
  EXPECT_EQ(world.shape().nodes, 5);
  EXPECT_EQ(world.shape().ranks_per_node, 1);
}

}  // namespace
}  // namespace ssl
