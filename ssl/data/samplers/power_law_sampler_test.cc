// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/power_law_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

// `classes` classes of `samples` samples; sample i has class i modulo `classes`.
ClassIndex Interleaved(int64_t classes, int64_t samples) {
  ClassIndex index(classes);
  for (int64_t i = 0; i < classes * samples; ++i) index[i % classes].push_back(i);
  return index;
}

TEST(PowerLawSampler, ProbabilitiesAreThePowersInARandomOrder) {
  std::set<std::vector<double>> orders;
  for (int64_t seed = 0; seed < 10; ++seed) {
    const PowerLawSampler sampler({Interleaved(5, 2), 1, 0, seed, 2, /*power=*/2.0});
    std::vector<double> probabilities = sampler.probabilities();
    orders.insert(probabilities);
    std::sort(probabilities.rbegin(), probabilities.rend());
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(probabilities[0] / probabilities[i], (1 + i) * (1 + i), 1e-9);
    EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1.0, 1e-12);
  }
  EXPECT_GT(orders.size(), 5u);
}

TEST(PowerLawSampler, NegativePower_DrawsBySquareRoots) {
  const PowerLawSampler sampler({{{0, 1, 2, 3}, {4}}, 1, 0, 0, 1, /*power=*/-1.0});
  EXPECT_NEAR(sampler.probabilities()[0], 2.0 / 3, 1e-12);
  EXPECT_NEAR(sampler.probabilities()[1], 1.0 / 3, 1e-12);
}

TEST(PowerLawSampler, ClassesComeAsOftenAsTheirProbabilities) {
  const PowerLawSampler sampler({Interleaved(4, 500), 2, 1, 3, /*batch_size=*/10, /*power=*/1.0});
  ASSERT_EQ(sampler.size(), 1000);
  std::vector<int> counts(4, 0);
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    const std::vector<int64_t> indices = sampler.Indices(epoch);
    ASSERT_EQ(static_cast<int64_t>(indices.size()), sampler.size());
    for (const int64_t index : indices) ++counts[index % 4];
  }
  for (int c = 0; c < 4; ++c) {
    const double p = sampler.probabilities()[c];
    EXPECT_NEAR(counts[c], 10000 * p, 5 * std::sqrt(10000 * p * (1 - p))) << c;
  }
}

TEST(PowerLawSampler, RanksHavePartsOfTheirOwn_BatchesDifferentSamples) {
  std::vector<std::vector<int64_t>> ranks;
  for (int64_t rank = 0; rank < 2; ++rank) {
    ranks.push_back(PowerLawSampler({Interleaved(3, 40), 2, rank, 3, /*batch_size=*/6, 0.5}).Indices(4));
    for (size_t batch = 0; batch < ranks[rank].size(); batch += 6) {
      EXPECT_EQ(std::set<int64_t>(ranks[rank].begin() + batch, ranks[rank].begin() + batch + 6).size(), 6u);
    }
  }
  const std::set<int64_t> first(ranks[0].begin(), ranks[0].end());
  for (const int64_t sample : ranks[1]) EXPECT_EQ(first.count(sample), 0u);
}

TEST(PowerLawSampler, SmallClasses_RepeatTheirSamples) {
  const PowerLawSampler sampler({{{0}, {1}}, 1, 0, 0, /*batch_size=*/2, 1.0});
  for (int64_t epoch = 0; epoch < 20; ++epoch) EXPECT_EQ(sampler.Indices(epoch).size(), 2u);
}

TEST(PowerLawSampler, EpochsDiffer_TheSameEpochDoesNot) {
  const PowerLawSampler sampler({Interleaved(4, 50), 1, 0, 3, 10, 1.0});
  EXPECT_EQ(sampler.Indices(2), sampler.Indices(2));
  EXPECT_NE(sampler.Indices(2), sampler.Indices(3));
}

}  // namespace
}  // namespace ssl
