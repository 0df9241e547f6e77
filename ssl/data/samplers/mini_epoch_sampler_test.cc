// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/mini_epoch_sampler.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

MiniEpochSamplerOptions Options(int64_t size, int64_t world, int64_t mini_epochs, int64_t groups = 1) {
  MiniEpochSamplerOptions options;
  options.dataset_size = size;
  options.world_size = world;
  options.mini_epochs = mini_epochs;
  options.groups = groups;
  return options;
}

std::vector<int64_t> IndicesOfRank(MiniEpochSamplerOptions options, int64_t rank, int64_t epoch) {
  options.rank = rank;
  const MiniEpochSampler sampler(options);
  const std::vector<int64_t> indices = sampler.Indices(epoch);
  EXPECT_EQ(static_cast<int64_t>(indices.size()), sampler.size());
  return indices;
}

TEST(MiniEpochSampler, EachRankHasTheSamplesOfOneBlock) {
  EXPECT_EQ(MiniEpochSampler(Options(24, 2, 3)).size(), 4);
  EXPECT_EQ(MiniEpochSampler(Options(25, 2, 3)).size(), 5) << "rounded up";
  EXPECT_EQ(MiniEpochSampler(Options(5, 4, 4)).size(), 1);
}

TEST(MiniEpochSampler, OnePass_VisitsEachSampleOnceAndTheHeadAgain) {
  for (const int64_t size : {24, 25, 5}) {
    for (const int64_t world : {1, 2, 4}) {
      const MiniEpochSamplerOptions options = Options(size, world, 3);
      const int64_t visits_in_all = MiniEpochSampler(options).size() * world * 3;
      for (const int64_t pass : {0, 1}) {
        std::vector<int64_t> order;
        for (int64_t mini = 0; mini < 3; ++mini) {
          for (int64_t rank = 0; rank < world; ++rank) {
            const std::vector<int64_t> mine = IndicesOfRank(options, rank, pass * 3 + mini);
            order.insert(order.end(), mine.begin(), mine.end());
          }
        }
        ASSERT_EQ(static_cast<int64_t>(order.size()), visits_in_all);
        std::map<int64_t, int64_t> visits;
        for (const int64_t index : order) ++visits[index];
        EXPECT_EQ(static_cast<int64_t>(visits.size()), size);
        for (int64_t i = size; i < visits_in_all; ++i) EXPECT_EQ(order[i], order[i - size]) << "its own head";
      }
    }
  }
}

TEST(MiniEpochSampler, OrderHoldsForOnePassAndDependsOnTheSeed) {
  const MiniEpochSamplerOptions options = Options(30, 1, 3);
  EXPECT_EQ(IndicesOfRank(options, 0, 1), IndicesOfRank(options, 0, 1));
  std::vector<int64_t> of_next_pass = IndicesOfRank(options, 0, 4);
  EXPECT_NE(IndicesOfRank(options, 0, 1), of_next_pass);
  // Pass p with seed s has the seed s + 1000 + p.
  MiniEpochSamplerOptions other = options;
  other.seed = 1;
  EXPECT_EQ(IndicesOfRank(other, 0, 1), of_next_pass);
}

TEST(MiniEpochSampler, Groups_KeepTheirNeighbourhood) {
  // Four blocks of 6: with 2 ranks and 2 mini-epochs each rank has one of them.
  const MiniEpochSamplerOptions options = Options(24, 2, 2, 4);
  for (const int64_t pass : {0, 1}) {
    for (int64_t mini = 0; mini < 2; ++mini) {
      for (int64_t rank = 0; rank < 2; ++rank) {
        const int64_t first = (mini * 2 + rank) * 6;
        std::vector<int64_t> mine = IndicesOfRank(options, rank, pass * 2 + mini);
        std::sort(mine.begin(), mine.end());
        EXPECT_THAT(mine, ElementsAre(first, first + 1, first + 2, first + 3, first + 4, first + 5));
      }
    }
  }
}

TEST(MiniEpochSampler, MoreGroupsThanSamples_KeepEachInItsPlace) {
  for (const int64_t groups : {int64_t{4}, int64_t{5}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(IndicesOfRank(Options(4, 1, 1, groups), 0, 0), ElementsAre(0, 1, 2, 3)) << groups;
  }
}

TEST(MiniEpochSampler, TestPhases_AreNoMiniEpochs) {
  MiniEpochSamplerOptions options = Options(24, 1, 2);
  const std::vector<int64_t> second = IndicesOfRank(options, 0, 1);
  options.mini_epoch_of = {0, 1, 1, 2};  // train, test, train, test
  EXPECT_EQ(IndicesOfRank(options, 0, 2), second);
}

}  // namespace
}  // namespace ssl
