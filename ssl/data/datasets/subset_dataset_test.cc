// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/subset_dataset.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(SubsetDatasetGolden, DrawIsThatOfVissl) {
  RunGolden("samplers", "data_limit", [&](const golden::Case& golden_case) {
    const std::vector<int64_t> drawn =
        DrawSubset(golden_case.Int("total"), golden_case.Int("num_samples"), golden_case.Int("skip"),
                   static_cast<uint32_t>(golden_case.Int("seed")));

    EXPECT_EQ(drawn, golden::ToInts(golden_case.steps[0].Expected("indices").value));
  });
}

TEST(SubsetDataset, Draw_HasNoPositionTwice) {
  const std::vector<int64_t> drawn = DrawSubset(1000, 700, 300, 5);
  const std::set<int64_t> distinct(drawn.begin(), drawn.end());
  EXPECT_EQ(distinct.size(), 700u);
  EXPECT_GE(*distinct.begin(), 0);
  EXPECT_LT(*distinct.rbegin(), 1000);
}

TEST(SubsetDataset, Skip_MovesTheWindow) {
  const std::vector<int64_t> first = DrawSubset(15, 8, 0, 0);
  const std::vector<int64_t> second = DrawSubset(15, 8, 2, 0);
  EXPECT_EQ(std::vector<int64_t>(first.begin() + 2, first.end()),
            std::vector<int64_t>(second.begin(), second.end() - 2));
}

TEST(SubsetDataset, HeldOut_IsTheShareOfEachClass_AndTheRestIsAllElse) {
  std::vector<int64_t> labels;  // 40 of class 0, 10 of class 7, 2 of class 1, 1 of class 3, in turn as they last
  for (int64_t i = 0; i < 40; ++i) {
    labels.push_back(0);
    if (i < 10) labels.push_back(7);
    if (i < 2) labels.push_back(1);
    if (i < 1) labels.push_back(3);
  }
  const std::vector<int64_t> held_out = DrawHeldOut(labels, 0.1, 5, /*held_out=*/true);
  const std::vector<int64_t> rest = DrawHeldOut(labels, 0.1, 5, /*held_out=*/false);
  std::map<int64_t, int> counts;
  for (const int64_t position : held_out) ++counts[labels[position]];
  EXPECT_EQ(counts, (std::map<int64_t, int>{{0, 4}, {1, 1}, {7, 1}}));
  std::vector<int64_t> all;
  std::merge(held_out.begin(), held_out.end(), rest.begin(), rest.end(), std::back_inserter(all));
  std::vector<int64_t> positions(labels.size());
  std::iota(positions.begin(), positions.end(), 0);
  EXPECT_EQ(all, positions);
  EXPECT_EQ(DrawHeldOut(labels, 0.1, 5, true), held_out);
  EXPECT_NE(DrawHeldOut(labels, 0.1, 6, true), held_out);
}

TEST(SubsetDataset, HeldOut_LeavesEachClassASample) {
  EXPECT_EQ(DrawHeldOut({0, 0, 0, 1}, 0.9, 0, /*held_out=*/true).size(), 2u);
  EXPECT_TRUE(DrawHeldOut({0, 1, 2}, 0.5, 0, /*held_out=*/true).empty());
}

TEST(SubsetDataset, Get_ReadsTheChosenSamples) {
  ImageArray array;
  array.count = 4;
  array.height = array.width = 1;
  array.pixels = {10, 20, 30, 40};
  array.labels = {0, 1, 2, 3};
  const SubsetDataset subset(ArrayDataset::Create(std::move(array), "four").value(), {3, 1});
  Sample sample;
  sample.ResetViews(1);

  ASSERT_OK(subset.Get(0, &sample));

  EXPECT_EQ(subset.size(), 2);
  EXPECT_TRUE(subset.has_labels());
  EXPECT_EQ(subset.description(), "four");
  EXPECT_EQ(sample.view(0).image.pixels()[0], 40);
  EXPECT_EQ(sample.label, 3);
  ASSERT_OK(subset.Get(1, &sample));
  EXPECT_EQ(sample.label, 1);
}

}  // namespace
}  // namespace ssl
