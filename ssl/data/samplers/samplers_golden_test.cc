// SPDX-License-Identifier: Apache-2.0
//
// The orders of PyTorch's and VISSL's samplers, and VISSL's subsets.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/samplers/slice_sampler.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

std::vector<int64_t> Integers(const golden::Case& golden_case, const char* output) {
  return golden::ToInts(golden_case.steps[0].Expected(output).value);
}

void CheckDistributedSampler(const golden::Case& golden_case) {
  DistributedSamplerOptions options;
  options.dataset_size = golden_case.Count("dataset_size");
  options.world_size = golden_case.Count("world");
  options.rank = golden_case.Int("rank");
  options.seed = golden_case.Int("seed");
  options.shuffle = golden_case.Flag("shuffle");
  options.drop_last = golden_case.Flag("drop_last");
  EXPECT_EQ(DistributedSampler(options).Indices(golden_case.Int("epoch")), Integers(golden_case, "indices"));
}

// VISSL's sampler leaves out the batches of an interrupted epoch; here the loader does.
void CheckSlice(const golden::Case& golden_case, bool shuffle) {
  SliceSamplerOptions options;
  options.dataset_size = golden_case.Count("dataset_size");
  options.world_size = golden_case.Count("world");
  options.rank = golden_case.Int("rank");
  options.seed = golden_case.Int("seed");
  options.shuffle = shuffle;
  const SliceSampler sampler(options);

  std::vector<int64_t> order = sampler.Indices(golden_case.Int("epoch"));
  const int64_t skipped = std::min(sampler.size(), golden_case.Int("start_iter") * golden_case.Count("batch_size"));
  order.erase(order.begin(), order.begin() + skipped);

  EXPECT_EQ(sampler.size(), golden_case.steps[0].Expected("num_samples").integer);
  EXPECT_EQ(order, Integers(golden_case, "indices"));
}

void CheckStatefulSampler(const golden::Case& golden_case) { CheckSlice(golden_case, /*shuffle=*/true); }
void CheckDebuggingSampler(const golden::Case& golden_case) { CheckSlice(golden_case, /*shuffle=*/false); }

void CheckDataLimit(const golden::Case& golden_case) {
  EXPECT_EQ(DrawSubset(golden_case.Count("total"), golden_case.Int("num_samples"), golden_case.Int("skip"),
                       static_cast<uint32_t>(golden_case.Int("seed"))),
            Integers(golden_case, "indices"));
}

void CheckBalancedDataLimit(const golden::Case& golden_case) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> drawn,
                       DrawBalancedSubset(golden_case.Ints("labels"), golden_case.Int("num_samples"),
                                          golden_case.Int("skip"), static_cast<uint32_t>(golden_case.Int("seed"))));
  EXPECT_EQ(drawn, Integers(golden_case, "indices"));
}

TEST(SamplersGolden, OrdersMatch) {
  golden::RunCategory("samplers",
                      {{"distributed_sampler", &CheckDistributedSampler},
                       {"stateful_sampler", &CheckStatefulSampler},
                       {"debugging_sampler", &CheckDebuggingSampler},
                       {"data_limit", &CheckDataLimit},
                       {"data_limit_balanced", &CheckBalancedDataLimit}},
                      /*out_of_scope=*/{"randperm", "stratified_sampler"});
}

}  // namespace
}  // namespace ssl
