// SPDX-License-Identifier: Apache-2.0
//
// VISSL's keys, its forms of RUN_ID, and what cannot be placed.
#include "ssl/distributed/node_options.h"

#include <map>
#include <string>

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

EnvironmentVariable From(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](absl::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

const EnvironmentVariable kNothing = From({});

auto Refuses(const char* culprit, const char* expected) {
  return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(culprit), HasSubstr(expected)));
}

// Such a file is right, and runs where somebody names the first node.
TEST(PlaceFromOptionsTest, SeveralNodesWithoutAFirstOneAreUnimplementedHere_WithTheTokensThatRunIt) {
  for (const char* method : {"tcp", "file"}) {
    EXPECT_THAT(
        PlaceFromOptions({8, 8, 0, method, "auto"}, kNothing),
        StatusIs(absl::StatusCode::kUnimplemented,
                 "config.DISTRIBUTED.RUN_ID is \"auto\", expected HOST:PORT of the first node (NUM_NODES is 8); "
                 "add config.DISTRIBUTED.NUM_NODES=1 to run on this one alone, or start it by srun"));
  }
  EXPECT_THAT(PlaceFromOptions({8, 8, 0, "tcp", "xxxxxxxx"}, kNothing),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("add config.DISTRIBUTED.NUM_NODES=1 config.DISTRIBUTED.RUN_ID=auto to run on this")));
  EXPECT_OK(PlaceFromOptions({1, 8, 0, "tcp", "auto"}, kNothing)) << "as that advice says";
}

TEST(PlaceFromOptionsTest, OneNodeLeavesThePortToTheLauncher) {
  for (const char* method : {"tcp", "file"}) {
    ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceFromOptions({1, 4, {}, method, "auto"}, kNothing));
    EXPECT_EQ(place.rank, 0);
    EXPECT_EQ(place.size, 4);
    EXPECT_EQ(place.local_size, 4);
    EXPECT_EQ(place.host, "localhost");
    EXPECT_EQ(place.port, 0);
    EXPECT_EQ(place.store_file, "");
    EXPECT_EQ(place.source, "config.DISTRIBUTED");
  }
}

TEST(PlaceFromOptionsTest, TheNodesFirstRankFollowsThoseOfTheNodesBefore) {
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceFromOptions({3, 8, 2, "tcp", "gpu1:40050"}, kNothing));
  EXPECT_EQ(place.rank, 16);
  EXPECT_EQ(place.size, 24);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.local_size, 8);
  EXPECT_EQ(place.host, "gpu1");
  EXPECT_EQ(place.port, 40050);
}

TEST(PlaceFromOptionsTest, SlurmTellsTheNodeUnlessItIsGiven) {
  const EnvironmentVariable slurm = From({{"SLURM_STEP_NODELIST", "gpu[1-2]"}, {"SLURM_NODEID", "1"}});
  ASSERT_OK_AND_ASSIGN(const WorldPlace of_slurm, PlaceFromOptions({2, 2, {}, "tcp", "gpu1:7"}, slurm));
  EXPECT_EQ(of_slurm.rank, 2);
  ASSERT_OK_AND_ASSIGN(const WorldPlace given, PlaceFromOptions({2, 2, 0, "tcp", "gpu1:7"}, slurm));
  EXPECT_EQ(given.rank, 0);
}

TEST(PlaceFromOptionsTest, AnAddressWithColons) {
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceFromOptions({2, 1, 0, "tcp", "fe80::1:7"}, kNothing));
  EXPECT_EQ(place.host, "fe80::1");
  EXPECT_EQ(place.port, 7);
}

TEST(PlaceFromOptionsTest, AFileIsAPath) {
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceFromOptions({2, 1, 1, "file", "/shared/store:1"}, kNothing));
  EXPECT_EQ(place.store_file, "/shared/store:1");
  EXPECT_EQ(place.rank, 1);
}

TEST(PlaceFromOptionsTest, TheEnvironmentGivesTheMaster) {
  const EnvironmentVariable master = From({{"MASTER_ADDR", "gpu9"}, {"MASTER_PORT", "29501"}});
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceFromOptions({2, 2, 1, "env", "auto"}, master));
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.host, "gpu9");
  EXPECT_EQ(place.port, 29501);
  EXPECT_THAT(PlaceFromOptions({2, 2, 1, "env", "auto"}, kNothing), Refuses("MASTER_ADDR is not set", "expected"));
}

// As VISSL is started by srun: one task on each node, which is to start the node's ranks.
TEST(CheckTasksTest, ATaskOnEachNode_IsNoRankOfMany) {
  const auto step = [](const char* tasks, const char* tasks_per_node) {
    return From({{"SLURM_STEP_NUM_TASKS", tasks},
                 {"SLURM_PROCID", "1"},
                 {"SLURM_LOCALID", "0"},
                 {"SLURM_NODEID", "1"},
                 {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
                 {"SLURM_STEP_NODELIST", "gpu[1-2]"},
                 {"SLURM_JOB_ID", "7"}});
  };
  const auto check = [](const EnvironmentVariable& variable, int64_t ranks_per_node) {
    const absl::StatusOr<WorldPlace> place = FindWorldPlace(variable);
    return place.ok() ? CheckTasks(*place, {2, ranks_per_node, {}}, variable) : place.status();
  };
  EXPECT_THAT(check(step("2", "1(x2)"), 8), Refuses("NUM_PROC_PER_NODE is \"8\"", "srun --ntasks-per-node=8"));
  EXPECT_OK(check(step("2", "1(x2)"), 1));
  EXPECT_OK(check(step("3", "2,1"), 8)) << "tasks are ranks, as many as there are";
  EXPECT_OK(check(From({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}}), 8));
}

TEST(PlaceFromOptionsTest, WhatCannotBePlacedIsNamed) {
  EXPECT_THAT(PlaceFromOptions({1, 1, {}, "file", ""}, kNothing), Refuses("RUN_ID is \"\"", "a path"));
  EXPECT_THAT(PlaceFromOptions({1, 1, {}, "mpi", "auto"}, kNothing), Refuses("INIT_METHOD is \"mpi\"", "tcp, env"));
  EXPECT_THAT(PlaceFromOptions({2, 1, 2, "tcp", "a:1"}, kNothing), Refuses("this node is 2", "0 to 1"));
  EXPECT_THAT(PlaceFromOptions({2, 1, -1, "tcp", "a:1"}, kNothing), Refuses("this node is -1", "0 to 1"));
  for (const char* run_id : {"gpu1:", ":7", "gpu1:0", "gpu1:65536", "gpu1:x"}) {
    EXPECT_THAT(PlaceFromOptions({2, 1, 0, "tcp", run_id}, kNothing), Refuses(run_id, "HOST:PORT")) << run_id;
  }
  // Right where the first node is named, and not here.
  for (const char* run_id : {"gpu1", ""}) {
    EXPECT_THAT(PlaceFromOptions({2, 1, 0, "tcp", run_id}, kNothing),
                StatusIs(absl::StatusCode::kUnimplemented, AllOf(HasSubstr(run_id), HasSubstr("HOST:PORT"))));
  }
}

}  // namespace
}  // namespace ssl
