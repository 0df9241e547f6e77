// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/testing/thread_team.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(ThreadTeam, SumAndMax_AreThoseOfAllThreadsOfTheTeam) {
  std::atomic<int> right = 0;
  RunTeams(2, 3, [&](const ThreadTeam& team, const ThreadTeams& teams) {
    const int64_t value = 10 * teams.index() + team.index();
    for (int round = 0; round < 20; ++round) {
      if (team.Sum(value) == 30 * teams.index() + 3 && team.Max(value) == 10 * teams.index() + 2) ++right;
    }
  });
  EXPECT_EQ(right, 2 * 3 * 20);
}

TEST(ThreadTeam, Wait_ShowsWhatTheOthersWroteBeforeIt) {
  std::atomic<int> right = 0;
  std::vector<int> written(6);
  RunTeams(2, 3, [&](const ThreadTeam& team, const ThreadTeams& teams) {
    for (int round = 1; round <= 20; ++round) {
      written[3 * teams.index() + team.index()] = round;
      teams.Wait();
      if (written == std::vector<int>(6, round)) ++right;
      teams.Wait();
    }
  });
  EXPECT_EQ(right, 6 * 20);
}

}  // namespace
}  // namespace ssl
