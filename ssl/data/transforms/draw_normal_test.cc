// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/draw_normal.h"

#include <cmath>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(DrawNormal, MomentsAndTails_AreThoseOfTheDistribution) {
  CounterRandom random(3, 0, 0, 0, 0);
  constexpr int kDraws = 40000;
  double sum = 0.0, squares = 0.0, fourth = 0.0;
  int beyond_one = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = DrawNormal(random);
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    beyond_one += std::abs(value) > 1.0 ? 1 : 0;
  }
  // Five standard deviations of each estimate.
  EXPECT_NEAR(sum / kDraws, 0.0, 5.0 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 5.0 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3.0, 5.0 * std::sqrt(96.0 / kDraws));
  EXPECT_NEAR(static_cast<double>(beyond_one) / kDraws, 0.3173, 5.0 * std::sqrt(0.3173 * 0.6827 / kDraws));
}

}  // namespace
}  // namespace ssl
