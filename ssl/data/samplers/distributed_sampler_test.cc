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

bool Flag(const golden::Case& golden_case, const char* name) { return golden_case.params.Find(name)->AsBool().value(); }

TEST(DistributedSamplerGolden, OrderIsThatOfPyTorch) {
  for (const golden::Case& golden_case : GoldenCases("samplers", "distributed_sampler")) {
    SCOPED_TRACE(golden_case.name);
    DistributedSamplerOptions options;
    options.dataset_size = golden_case.Int("dataset_size");
    options.world_size = golden_case.Int("world");
    options.rank = golden_case.Int("rank");
    options.seed = golden_case.Int("seed");
    options.shuffle = Flag(golden_case, "shuffle");
    options.drop_last = Flag(golden_case, "drop_last");
    const auto& outputs = golden_case.steps[0].outputs;

    const DistributedSampler sampler(options);

    EXPECT_EQ(sampler.size(), outputs.at("num_samples").integer);
    EXPECT_EQ(sampler.Indices(golden_case.Int("epoch")), ToInts(outputs.at("indices").value));
  }
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
