// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/distributed_sampler.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

TEST(DistributedSamplerGolden, OrderIsThatOfPyTorch) {
  RunGolden("samplers", "distributed_sampler", [&](const golden::Case& golden_case) {
    DistributedSamplerOptions options;
    options.dataset_size = golden_case.Count("dataset_size");
    options.world_size = golden_case.Count("world");
    options.rank = golden_case.Int("rank");
    options.seed = golden_case.Int("seed");
    options.shuffle = golden_case.Flag("shuffle");
    options.drop_last = golden_case.Flag("drop_last");
    const golden::Step& step = golden_case.steps[0];

    const DistributedSampler sampler(options);

    EXPECT_EQ(sampler.size(), step.Expected("num_samples").integer);
    EXPECT_EQ(sampler.Indices(golden_case.Int("epoch")), golden::ToInts(step.Expected("indices").value));
  });
}

TEST(DistributedSampler, AllWorlds_RanksTogetherVisitEverySample) {
  for (int64_t size : {1, 2, 7, 20}) {
    for (int64_t world : {1, 2, 3, 8, 33}) {
      std::map<int64_t, int> visits;
      DistributedSamplerOptions options;
      options.dataset_size = size;
      options.world_size = world;
      for (options.rank = 0; options.rank < world; ++options.rank) {
        const DistributedSampler sampler(options);
        const std::vector<int64_t> order = sampler.Indices(3);
        ASSERT_EQ(static_cast<int64_t>(order.size()), (size + world - 1) / world);
        for (int64_t index : order) ++visits[index];
      }
      EXPECT_EQ(static_cast<int64_t>(visits.size()), size) << "world " << world;
      EXPECT_EQ(visits.begin()->first, 0);
      EXPECT_EQ(visits.rbegin()->first, size - 1);
    }
  }
}

TEST(DistributedSampler, DropLast_VisitsNoSampleTwice) {
  DistributedSamplerOptions options;
  options.dataset_size = 20;
  options.world_size = 3;
  options.drop_last = true;
  std::map<int64_t, int> visits;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    for (int64_t index : DistributedSampler(options).Indices(0)) ++visits[index];
  }
  EXPECT_EQ(visits.size(), 18u);
}

TEST(DistributedSampler, OtherEpochOrSeed_IsAnotherOrder) {
  DistributedSamplerOptions options;
  options.dataset_size = 100;
  const DistributedSampler sampler(options);
  options.seed = 7;
  const DistributedSampler other_seed(options);

  EXPECT_EQ(sampler.Indices(1), sampler.Indices(1));
  EXPECT_NE(sampler.Indices(1), sampler.Indices(2));
  EXPECT_NE(sampler.Indices(1), other_seed.Indices(1));
}

}  // namespace
}  // namespace ssl
