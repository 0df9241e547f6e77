// SPDX-License-Identifier: Apache-2.0
//
// What a rank finds, and that it finds its place by it.
#include "ssl/launch/rank_environment.h"

#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// Four ranks on this host, the second of three.
WorldPlace SecondHost() {
  WorldPlace first;
  first.rank = 4;
  first.size = 12;
  first.local_size = 4;
  first.host = "gpu1";
  first.port = 40050;
  first.restart_count = 2;
  return first;
}

TEST(RankEnvironmentTest, HasTorchrunsVariables) {
  EXPECT_THAT(RankEnvironment({"PATH=/bin", "A=b=c"}, SecondHost(), 3, 5, 16),
              IsSupersetOf({"RANK=7", "WORLD_SIZE=12", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=1",
                            "MASTER_ADDR=gpu1", "MASTER_PORT=40050", "TORCHELASTIC_RESTART_COUNT=2",
                            "TORCHELASTIC_MAX_RESTARTS=5", "OMP_NUM_THREADS=4", "PATH=/bin", "A=b=c"}));
}

absl::StatusOr<WorldPlace> PlaceOf(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : entries) variables.insert(absl::StrSplit(entry, absl::MaxSplits('=', 1)));
  return FindWorldPlace([&](absl::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(RankEnvironmentTest, FindWorldPlaceReadsIt) {
  // What is left of an outer launcher does not count.
  ASSERT_OK_AND_ASSIGN(
      const WorldPlace place,
      PlaceOf(RankEnvironment({"RANK=0", "TORCHELASTIC_USE_AGENT_STORE=True", "SLURM_STEP_NUM_TASKS=3"}, SecondHost(),
                              1, 0, 1)));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
  EXPECT_EQ(place.restart_count, 2);
  EXPECT_EQ(place.source, "our launcher");
  EXPECT_FALSE(place.store_is_served);
}

TEST(RankEnvironmentTest, AStoreFileTakesThePlaceOfThePort) {
  WorldPlace first = SecondHost();
  first.store_file = "/shared/store";
  const std::vector<std::string> entries = RankEnvironment({"MASTER_PORT=1", "MASTER_ADDR=a"}, first, 1, 0, 1);
  EXPECT_THAT(entries, Contains("SSL_STORE_FILE=/shared/store"));
  EXPECT_THAT(entries, Not(Contains(StartsWith("MASTER_"))));
  EXPECT_THAT(RankEnvironment({"SSL_STORE_FILE=old"}, SecondHost(), 1, 0, 1),
              Not(Contains(StartsWith("SSL_STORE_FILE"))));
  ASSERT_OK_AND_ASSIGN(const WorldPlace place, PlaceOf(entries));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.store_file, "/shared/store");
}

TEST(RankEnvironmentTest, RankZeroAloneHasTheListeningSocket) {
  WorldPlace first;
  first.size = first.local_size = 2;
  const std::vector<std::string> inherited = {"SSL_LISTENING_SOCKET=3"};
  EXPECT_THAT(RankEnvironment(inherited, first, 0, 0, 1), Not(Contains(StartsWith("SSL_LISTENING_SOCKET"))));
  first.listening_socket = 9;
  EXPECT_THAT(RankEnvironment(inherited, first, 0, 0, 1), Contains("SSL_LISTENING_SOCKET=9"));
  EXPECT_THAT(RankEnvironment(inherited, first, 1, 0, 1), Not(Contains(StartsWith("SSL_LISTENING_SOCKET"))));
}

TEST(RankEnvironmentTest, ThreadsAreSharedUnlessTheUserSaysOtherwise) {
  EXPECT_THAT(RankEnvironment({}, SecondHost(), 0, 0, 3), Contains("OMP_NUM_THREADS=1"));
  EXPECT_THAT(RankEnvironment({}, SecondHost(), 0, 0, 9), Contains("OMP_NUM_THREADS=2"));
  EXPECT_THAT(RankEnvironment({"OMP_NUM_THREADS="}, SecondHost(), 0, 0, 9), Contains("OMP_NUM_THREADS=2"));
  const std::vector<std::string> kept = RankEnvironment({"OMP_NUM_THREADS=7"}, SecondHost(), 0, 0, 9);
  EXPECT_THAT(kept, Contains("OMP_NUM_THREADS=7"));
  EXPECT_THAT(kept, Not(Contains("OMP_NUM_THREADS=2")));
}

}  // namespace
}  // namespace ssl
