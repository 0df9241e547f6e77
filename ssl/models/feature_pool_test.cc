// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/feature_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& Stages() {
  static const auto* const stages = new std::vector<std::string>{"conv1", "res4", "res5avg"};
  return *stages;
}

absl::StatusOr<std::vector<FeatureRequest>> Read(const std::string& text, bool flatten = true) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> tree = ParseYaml(absl::StrCat("MAP: ", text), "eval.yaml", &warnings);
  if (!tree.ok()) return tree.status();
  return ReadFeaturePools(*tree->Find("MAP"), "config.MAP", flatten, Stages());
}

at::Tensor Wave(at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat)).view(shape);
}

// The pool of one map [1, 1, H, W] as a loop: windows of `kernel`, `stride` apart, from -padding on; what lies outside
// counts as zero in an average (torch's count_include_pad) and as nothing in a maximum.
at::Tensor NaivePool(const at::Tensor& map, const FeaturePool& pool, bool maximum) {
  const std::vector<int64_t> stride = pool.stride.empty() ? pool.size : pool.stride;
  const std::vector<int64_t> padding = pool.padding.empty() ? std::vector<int64_t>{0, 0} : pool.padding;
  const int64_t height = (map.size(2) + 2 * padding[0] - pool.size[0]) / stride[0] + 1;
  const int64_t width = (map.size(3) + 2 * padding[1] - pool.size[1]) / stride[1] + 1;
  at::Tensor result = at::arange(height * width, at::kFloat).view({1, 1, height, width});
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      double sum = 0;
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < pool.size[0] * pool.size[1]; ++i) {
        const int64_t row = y * stride[0] - padding[0] + i / pool.size[1];
        const int64_t column = x * stride[1] - padding[1] + i % pool.size[1];
        if (row < 0 || column < 0 || row >= map.size(2) || column >= map.size(3)) continue;
        const double value = map[0][0][row][column].item<double>();
        sum += value;
        most = std::max(most, value);
      }
      result[0][0][y][x] = maximum ? most : sum / static_cast<double>(pool.size[0] * pool.size[1]);
    }
  }
  return result;
}

TEST(FeaturePoolTest, MapOfAllPools_IsReadInItsOrder) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<FeatureRequest> requests,
      Read("[[res4, [AvgPool2d, [[8, 6], 3, 1]]], [conv1, [MaxPool2d, [2]]], [res5avg, [Identity, []]], "
           "[conv1, [AdaptiveAvgPool2d, [[2, 3]]]], [conv1, [AdaptiveMaxPool2d, [4]]]]"));
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[0].name, "res4");
  EXPECT_EQ(requests[0].pool.kind, FeaturePool::Kind::kAverage);
  EXPECT_EQ(requests[0].pool.size, (std::vector<int64_t>{8, 6}));
  EXPECT_EQ(requests[0].pool.stride, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(requests[0].pool.padding, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(requests[1].pool.kind, FeaturePool::Kind::kMax);
  EXPECT_TRUE(requests[1].pool.stride.empty());
  EXPECT_EQ(requests[2].pool.kind, FeaturePool::Kind::kIdentity);
  EXPECT_EQ(requests[3].pool.kind, FeaturePool::Kind::kAdaptiveAverage);
  EXPECT_EQ(requests[4].pool.size, (std::vector<int64_t>{4, 4}));
  EXPECT_TRUE(requests[4].flatten);
}

TEST(FeaturePoolTest, EmptyMap_HasNoRequests) {
  ASSERT_OK_AND_ASSIGN(const std::vector<FeatureRequest> none, Read("[]"));
  EXPECT_TRUE(none.empty());
  EXPECT_OK(Read("null"));
}

TEST(FeaturePoolTest, WindowPools_AreTheLoops) {
  const at::Tensor map = Wave({1, 1, 9, 7});
  for (const std::string arguments : {"[3]", "[[3, 2], 1]", "[[4, 3], [2, 3], [2, 1]]"}) {
    for (const bool maximum : {false, true}) {
      ASSERT_OK_AND_ASSIGN(
          const std::vector<FeatureRequest> requests,
          Read(absl::StrCat("[[res4, [", maximum ? "MaxPool2d" : "AvgPool2d", ", ", arguments, "]]]"), false));
      const at::Tensor pooled = PoolFeature(map, requests[0]);
      const at::Tensor expected = NaivePool(map, requests[0].pool, maximum);
      ASSERT_EQ(pooled.sizes(), expected.sizes()) << arguments;
      EXPECT_LT((pooled - expected).abs().max().item<double>(), 1e-6) << arguments;
    }
  }
}

TEST(FeaturePoolTest, AdaptivePools_AreWindowPoolsWhereSidesDivide) {
  const at::Tensor map = Wave({1, 1, 8, 6});
  const FeaturePool windows = {FeaturePool::Kind::kAverage, {4, 2}, {}, {}};
  for (const bool maximum : {false, true}) {
    const auto kind = maximum ? FeaturePool::Kind::kAdaptiveMax : FeaturePool::Kind::kAdaptiveAverage;
    const at::Tensor pooled = PoolFeature(map, {"res4", {kind, {2, 3}, {}, {}}, false});
    EXPECT_LT((pooled - NaivePool(map, windows, maximum)).abs().max().item<double>(), 1e-6);
  }
}

TEST(FeaturePoolTest, FlattenedFeatures_AreInTheOrderOfChannels) {
  const at::Tensor map = Wave({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(at::equal(PoolFeature(map, {"res4", {}, true}), Wave({2, 60})));
  EXPECT_TRUE(at::equal(PoolFeature(map, {"res4", {}, false}), map));
}

TEST(FeaturePoolTest, PooledStage_StaysAsItIs) {
  const at::Tensor rows = Wave({2, 3});
  EXPECT_TRUE(at::equal(PoolFeature(rows, {"res5avg", {FeaturePool::Kind::kAverage, {6, 6}, {}, {}}, true}), rows));
}

TEST(FeaturePoolTest, Mistakes_AreNamedWithTheirLine) {
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {"{a: 1}", "eval.yaml:1: config.MAP is a map, expected [[stage, [pool, [arguments]]]]"},
      {"[res4]", "eval.yaml:1: config.MAP[0] is 'res4', expected [stage, [pool, [arguments]]]"},
      {"[[res4, Identity]]", "config.MAP[0] is a list, expected [stage, [pool, [arguments]]]"},
      {"[[res5av, [Identity, []]]]", "names the stage 'res5av', expected one of conv1, res4, res5avg; did you mean"},
      {"[[res4, [AvgPool, [2]]]]", "config.MAP[0] pools with 'AvgPool', expected one of AdaptiveAvgPool2d"},
      {"[[res4, [AvgPool2d, 2]]]", "config.MAP[0] is a list, expected [pool, [arguments]]"},
      {"[[res4, [AvgPool2d]]]", "gives AvgPool2d 0 arguments, expected 1 to 3"},
      {"[[res4, [Identity, [2]]]]", "gives Identity 1 arguments, expected 0 to 0"},
      {"[[res4, [AvgPool2d, [2, 1, 0, True]]]]", "gives AvgPool2d 4 arguments, expected 1 to 3"},
      {"[[res4, [AvgPool2d, [0]]]]", "config.MAP[0] size is '0', expected an integer of at least 1"},
      {"[[res4, [AvgPool2d, [2, x]]]]", "config.MAP[0] stride is 'x', expected an integer of at least 1"},
      {"[[res4, [AvgPool2d, [2, 1, -1]]]]", "config.MAP[0] padding is '-1', expected an integer of at least 0"},
      {"[[res4, [AvgPool2d, [2, 1, 2]]]]", "config.MAP[0] pads by 2, expected at most half the kernel, 2"},
      {"[[res4, [AdaptiveAvgPool2d, [[1, 2, 3]]]]]", "size has 3 numbers, expected one or [height, width]"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Read(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
}

}  // namespace
}  // namespace ssl
