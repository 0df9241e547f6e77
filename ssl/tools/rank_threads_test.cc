// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/rank_threads.h"

#include <map>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace ssl {
namespace {

std::optional<int64_t> Threads(int64_t cores_of_rank, int64_t ranks_here, const Cores& cores,
                               const std::map<std::string, std::string>& variables = {}) {
  WorldPlace place;
  place.size = 8;
  place.cores = cores_of_rank;
  return RankThreads(place, ranks_here, cores, [&](absl::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(RankThreadsTest, RanksOfAHostShareItsCores) {
  EXPECT_EQ(Threads(0, 2, {16, 16}), 8);
  EXPECT_EQ(Threads(0, 3, {16, 16}), 5);
  EXPECT_EQ(Threads(0, 4, {2, 2}), 1);
  EXPECT_EQ(Threads(0, 1, {16, 16}), std::nullopt);
}

TEST(RankThreadsTest, WhatTheSchedulerGaveGoesBeforeTheShare) {
  EXPECT_EQ(Threads(1, 1, {2, 2}), 1);
  EXPECT_EQ(Threads(12, 2, {16, 16}), 12);
  EXPECT_EQ(Threads(12, 1, {8, 8}), 8);
}

TEST(RankThreadsTest, ABoundRankComputesOnItsCores) {
  EXPECT_EQ(Threads(0, 2, {16, 4}), std::nullopt);
  EXPECT_EQ(Threads(2, 2, {16, 4}), std::nullopt);
}

TEST(RankThreadsTest, TheVariableDecides) {
  EXPECT_EQ(Threads(12, 2, {16, 16}, {{"OMP_NUM_THREADS", "3"}}), std::nullopt);
  EXPECT_EQ(Threads(12, 2, {16, 16}, {{"OMP_NUM_THREADS", ""}}), Threads(12, 2, {16, 16}, {}));
}

TEST(RankThreadsTest, ThisProcessHasCores) {
  const Cores cores = CoresOfThisProcess();
  EXPECT_GE(cores.open, 1);
  EXPECT_LE(cores.open, cores.online);
}

}  // namespace
}  // namespace ssl
