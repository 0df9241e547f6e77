// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metric_history.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace ssl {
namespace {

// fvcore's own test, with the same lengths: 1000 values, of which the last `length` are kept.
TEST(MetricHistory, KeepsTheLastValuesWithTheirIterations) {
  for (const int64_t length : {1, 7, 100, 999, 1000, 3000}) {
    MetricHistory history(length);
    double sum = 0.0;
    for (int64_t i = 0; i < 1000; ++i) {
      const double value = std::sin(static_cast<double>(i));
      sum += value;
      history.Add(value, i);
    }
    const int64_t kept = std::min<int64_t>(length, 1000);
    ASSERT_EQ(history.size(), kept);
    for (int64_t age = 0; age < kept; ++age) {
      EXPECT_EQ(history.FromNewest(age).iteration, 999 - age);
      EXPECT_EQ(history.FromNewest(age).value, std::sin(static_cast<double>(999 - age)));
    }
    EXPECT_NEAR(history.GlobalMean(), sum / 1000.0, 1e-12);
  }
}

TEST(MetricHistory, MedianAndMean_AreOfTheLastOfThoseThatAreKept) {
  for (const int64_t length : {50, 100, 1000}) {
    MetricHistory history(length);
    for (int64_t i = 0; i < 1000; ++i) history.Add(static_cast<double>(i), i);
    // The last n of 0..999 are 1000-n..999.
    const double n = static_cast<double>(std::min<int64_t>(100, length));
    EXPECT_EQ(history.Median(100), 999.0 - (n - 1.0) / 2.0);
    EXPECT_EQ(history.Mean(100), 999.0 - (n - 1.0) / 2.0);
  }
}

TEST(MetricHistory, Median_OfAnOddCountIsTheMiddleAndOfAnEvenTheMeanOfTwo) {
  MetricHistory history(10);
  for (const double value : {9.0, 1.0, 4.0, 100.0}) history.Add(value, 1);
  EXPECT_EQ(history.Median(3), 4.0);
  EXPECT_EQ(history.Median(4), 6.5);
  EXPECT_EQ(history.Median(1), 100.0);
}

TEST(MetricHistory, CountBeyondWhatIsKept_IsAll) {
  MetricHistory history(2);
  for (const double value : {1.0, 2.0, 4.0}) history.Add(value, 1);
  EXPECT_EQ(history.Mean(99), 3.0);
  EXPECT_EQ(history.Mean(0), 4.0);  // the newest at least
}

TEST(MetricHistory, CountAfter_CountsLaterIterations) {
  MetricHistory history(5);
  EXPECT_EQ(history.CountAfter(-1), 0);
  for (const int64_t iteration : {2, 2, 3, 8, 9, 9}) history.Add(1.0, iteration);
  EXPECT_EQ(history.CountAfter(0), 5);  // the first was dropped
  EXPECT_EQ(history.CountAfter(2), 4);
  EXPECT_EQ(history.CountAfter(8), 2);
  EXPECT_EQ(history.CountAfter(9), 0);
}

TEST(MetricHistory, NaN_IsSeenWhileItIsInTheWindow) {
  MetricHistory history(10);
  history.Add(std::numeric_limits<double>::quiet_NaN(), 1);
  history.Add(2.0, 2);
  history.Add(3.0, 3);
  EXPECT_TRUE(std::isnan(history.Median(3)));
  EXPECT_EQ(history.Median(2), 2.5);
}

}  // namespace
}  // namespace ssl
