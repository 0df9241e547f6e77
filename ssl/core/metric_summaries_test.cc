// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metric_summaries.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(MakeHistogram, EveryBinOfEvenlySpreadValuesHasTheSameCount) {
  // 640 values, 10 for each bin of width 10; a matrix, so that the count is that of elements and not of rows.
  const MetricHistogram histogram = MakeHistogram(at::arange(640, at::kFloat).reshape({64, 10}));
  EXPECT_EQ(histogram.min, 0.0);
  EXPECT_EQ(histogram.max, 639.0);
  EXPECT_EQ(histogram.count, 640);
  EXPECT_EQ(histogram.sum, 639.0 * 640.0 / 2.0);
  EXPECT_EQ(histogram.sum_of_squares, 639.0 * 640.0 * 1279.0 / 6.0);
  ASSERT_THAT(histogram.edges, SizeIs(65));
  EXPECT_EQ(histogram.edges.front(), 0.0);
  EXPECT_EQ(histogram.edges.back(), 639.0);
  EXPECT_DOUBLE_EQ(histogram.edges[32], 319.5);
  EXPECT_THAT(histogram.counts, Each(10.0));
}

TEST(MakeHistogram, CountsAreThoseOfANaiveLoop) {
  const at::Tensor values = at::arange(1000, at::kDouble).mul(0.37).sin();
  const MetricHistogram histogram = MakeHistogram(values);
  std::vector<double> naive(kHistogramBins, 0.0);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = values[i].item<double>();
    int64_t bin = kHistogramBins - 1;
    while (bin > 0 && value < histogram.edges[bin]) --bin;
    ++naive[bin];
  }
  EXPECT_EQ(histogram.counts, naive);
}

TEST(MakeHistogram, OneValue_IsInTheMiddle) {
  const MetricHistogram histogram = MakeHistogram(at::full({5}, 2.0, at::kBFloat16));
  EXPECT_EQ(histogram.min, 2.0);
  EXPECT_EQ(histogram.max, 2.0);
  EXPECT_EQ(histogram.edges.front(), 1.5);
  EXPECT_EQ(histogram.edges.back(), 2.5);
  EXPECT_EQ(histogram.counts[32], 5.0);
  EXPECT_EQ(Sum(histogram.counts), 5.0);
}

TEST(MakeHistogram, WhatIsNotFinite_IsLeftOut) {
  const float infinity = std::numeric_limits<float>::infinity();
  const MetricHistogram histogram = MakeHistogram(at::tensor({1.0F, infinity, 3.0F, -infinity, std::nanf("")}));
  EXPECT_EQ(histogram.count, 2);
  EXPECT_EQ(histogram.sum, 4.0);
  EXPECT_EQ(Sum(histogram.counts), 2.0);
}

TEST(MakeHistogram, NoElement_IsNoBin) {
  const MetricHistogram histogram = MakeHistogram(at::empty({0}));
  EXPECT_EQ(histogram.count, 0);
  EXPECT_THAT(histogram.edges, IsEmpty());
  EXPECT_THAT(histogram.counts, IsEmpty());
}

TEST(MakeHistogram, ParameterWithAGradient_IsRead) {
  EXPECT_EQ(MakeHistogram(at::full({3}, 1.0).set_requires_grad(true)).count, 3);
}

TEST(MakeImage, PixelsAreCopiedInRows) {
  at::Tensor pixels = at::arange(12, at::kByte).reshape({2, 2, 3});
  ASSERT_OK_AND_ASSIGN(const MetricImage image, MakeImage(pixels.transpose(0, 1)));
  pixels.zero_();
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 2);
  EXPECT_EQ(image.pixels, std::string("\0\1\2\6\7\x8\3\4\5\x9\xa\xb", 12));
}

TEST(MakeImage, AnotherFormIsRefused) {
  EXPECT_THAT(MakeImage(at::empty({3, 4, 4}, at::kByte)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("an image is [3, 4, 4] of Byte, expected")));
  EXPECT_THAT(MakeImage(at::empty({4, 4, 3})), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of Float")));
  EXPECT_THAT(MakeImage(at::empty({0, 4, 3}, at::kByte)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeImage(at::Tensor()), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tensor")));
}

}  // namespace
}  // namespace ssl
