// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/draw_beta.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

constexpr int kDraws = 20000;

std::vector<double> Draw(double alpha) {
  std::vector<double> values(kDraws);
  for (int i = 0; i < kDraws; ++i) {
    CounterRandom random(1, 2, static_cast<uint64_t>(i), 4, 5);
    values[i] = DrawBeta(alpha, random);
  }
  return values;
}

// The largest distance between the distribution of the draws and `cumulative`.
double KolmogorovDistance(std::vector<double> values, const std::function<double(double)>& cumulative) {
  std::sort(values.begin(), values.end());
  double distance = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = cumulative(values[i]);
    distance = std::max(distance, std::abs(expected - static_cast<double>(i) / kDraws));
    distance = std::max(distance, std::abs(expected - static_cast<double>(i + 1) / kDraws));
  }
  return distance;
}

// The distances allow for one false alarm in a thousand such tests: sqrt(ln(2000) / 2n).
const double kMostDistance = std::sqrt(std::log(2000.0) / 2.0 / kDraws);

TEST(DrawBeta, HasTheDistributionOfItsFormula) {
  constexpr double kPi = 3.14159265358979323846;
  EXPECT_LT(KolmogorovDistance(Draw(0.5), [](double x) { return 2.0 / kPi * std::asin(std::sqrt(x)); }), kMostDistance);
  EXPECT_LT(KolmogorovDistance(Draw(1.0), [](double x) { return x; }), kMostDistance);
  EXPECT_LT(KolmogorovDistance(Draw(2.0), [](double x) { return x * x * (3.0 - 2.0 * x); }), kMostDistance);
}

TEST(DrawBeta, HasTheVarianceOfItsParameter) {
  for (const double alpha : {0.2, 0.4, 0.8, 1.5, 8.0}) {
    double sum = 0.0, squares = 0.0;
    for (const double value : Draw(alpha)) {
      sum += value - 0.5;
      squares += (value - 0.5) * (value - 0.5);
    }
    const double variance = 0.25 / (2.0 * alpha + 1.0);
    EXPECT_NEAR(sum / kDraws, 0.0, 4.0 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws / variance, 1.0, 0.05) << alpha;
  }
}

TEST(DrawBeta, OfATinyParameter_IsAlmostAlwaysAnEnd) {
  int between = 0;
  for (const double value : Draw(1e-4)) {
    EXPECT_TRUE(value >= 0.0 && value <= 1.0) << value;
    between += value > 1e-6 && value < 1.0 - 1e-6;
  }
  EXPECT_LT(between, kDraws / 50);
}

}  // namespace
}  // namespace ssl
