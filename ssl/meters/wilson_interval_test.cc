// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/wilson_interval.h"

#include "gtest/gtest.h"

namespace ssl {
namespace {

// Numbers of statsmodels.stats.proportion.proportion_confint(count, nobs, method="wilson").
TEST(WilsonIntervalTest, IsStatsmodels) {
  const AccuracyInterval few = WilsonInterval(12.0 / 30.0, 30);
  EXPECT_NEAR(few.low, 0.2459063, 1e-6);
  EXPECT_NEAR(few.high, 0.5767964, 1e-6);
  const AccuracyInterval many = WilsonInterval(0.8783, 10000);
  EXPECT_NEAR(many.low, 0.8717464, 1e-6);
  EXPECT_NEAR(many.high, 0.8845630, 1e-6);
}

TEST(WilsonIntervalTest, OfNoneAndAll_StaysWithinZeroAndOne) {
  const AccuracyInterval none = WilsonInterval(0.0, 10);
  EXPECT_NEAR(none.low, 0.0, 1e-12);
  EXPECT_NEAR(none.high, 0.2775328, 1e-6);
  const AccuracyInterval all = WilsonInterval(1.0, 10);
  EXPECT_NEAR(all.low, 0.7224672, 1e-6);
  EXPECT_NEAR(all.high, 1.0, 1e-12);
}

}  // namespace
}  // namespace ssl
