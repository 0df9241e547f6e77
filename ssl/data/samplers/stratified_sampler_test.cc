// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/stratified_sampler.h"

#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

// `classes` classes of `samples` samples; sample i has class i modulo `classes`.
ClassIndex Interleaved(int64_t classes, int64_t samples) {
  ClassIndex index(classes);
  for (int64_t i = 0; i < classes * samples; ++i) index[i % classes].push_back(i);
  return index;
}

// The numbers are those of VISSL's StratifiedClassSampler with PyTorch 2.11.
TEST(StratifiedSampler, SharedClasses_EqualVissls) {
  const StratifiedSampler sampler({Interleaved(4, 6), /*world_size=*/2, /*rank=*/1, /*seed=*/0, /*classes=*/2,
                                   /*samples_per_class=*/2, /*unique=*/false, /*passes=*/2});
  EXPECT_EQ(sampler.size(), 16);
  EXPECT_THAT(sampler.Indices(0), ElementsAre(21, 15, 17, 23, 22, 12, 14, 20, 16, 17, 12, 21, 15, 18, 23, 14));
  EXPECT_THAT(sampler.Indices(1), ElementsAre(18, 13, 22, 17, 23, 20, 19, 12, 23, 17, 15, 13, 12, 18, 16, 22));
  EXPECT_THAT(sampler.Indices(2), ElementsAre(23, 14, 19, 22, 20, 13, 12, 21, 23, 22, 19, 14, 12, 13, 20, 21));
}

TEST(StratifiedSampler, UniqueClasses_EqualVissls) {
  const StratifiedSampler sampler({Interleaved(5, 4), /*world_size=*/2, /*rank=*/1, /*seed=*/7, /*classes=*/1,
                                   /*samples_per_class=*/3, /*unique=*/true, /*passes=*/2});
  EXPECT_EQ(sampler.size(), 12);
  EXPECT_THAT(sampler.Indices(0), ElementsAre(6, 16, 11, 19, 9, 14, 16, 6, 1, 9, 19, 14));
  EXPECT_THAT(sampler.Indices(1), ElementsAre(4, 9, 14, 10, 0, 5, 4, 14, 9, 11, 6, 16));
  EXPECT_THAT(sampler.Indices(2), ElementsAre(11, 16, 6, 2, 12, 7, 10, 0, 5, 9, 14, 19));
}

// The classes of batch `batch`.
std::map<int64_t, int> ClassesOf(const std::vector<int64_t>& indices, int64_t batch, int64_t batch_size,
                                 int64_t classes) {
  std::map<int64_t, int> counts;
  for (int64_t i = batch * batch_size; i < (batch + 1) * batch_size; ++i) ++counts[indices[i] % classes];
  return counts;
}

TEST(StratifiedSampler, RanksShareClassesButNoSamples) {
  for (const bool unique : {false, true}) {
    std::vector<std::vector<int64_t>> ranks;
    for (int64_t rank = 0; rank < 2; ++rank) {
      const StratifiedSampler sampler(
          {Interleaved(12, 20), 2, rank, 3, /*classes=*/3, /*samples_per_class=*/4, unique, 1});
      ASSERT_EQ(sampler.batches_per_pass(), unique ? 2 : 4);
      ranks.push_back(sampler.Indices(5));
      ASSERT_EQ(static_cast<int64_t>(ranks[rank].size()), sampler.size());
    }
    for (int64_t batch = 0; batch < (unique ? 2 : 4); ++batch) {
      const std::map<int64_t, int> first = ClassesOf(ranks[0], batch, 12, 12);
      const std::map<int64_t, int> second = ClassesOf(ranks[1], batch, 12, 12);
      EXPECT_EQ(first.size(), 3u);
      for (const auto& [label, count] : first) {
        EXPECT_EQ(count, 4);
        EXPECT_EQ(second.count(label), unique ? 0u : 1u);
      }
    }
    std::set<int64_t> seen(ranks[0].begin(), ranks[0].end());
    EXPECT_EQ(seen.size(), ranks[0].size()) << "a pass shows no sample twice";
    for (const int64_t sample : ranks[1]) EXPECT_EQ(seen.count(sample), 0u);
  }
}

}  // namespace
}  // namespace ssl
