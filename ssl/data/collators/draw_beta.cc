// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/draw_beta.h"

#include <algorithm>
#include <cmath>

namespace ssl {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// Jöhnk's rejection (Devroye, "Non-Uniform Random Variate Generation", 1986, IX.3.5), which accepts 4 of 5 pairs or
// more for alpha <= 1/2. In logarithms: u^(1 / alpha) is 0 in floating point for a small alpha.
double DrawJohnk(double alpha, CounterRandom& random) {
  while (true) {
    const double x = std::log(1.0 - random.Uniform()) / alpha;
    const double y = std::log(1.0 - random.Uniform()) / alpha;
    if (std::exp(x) + std::exp(y) > 1.0) continue;
    const double larger = std::max(x, y);
    return std::exp(x - larger) / (std::exp(x - larger) + std::exp(y - larger));
  }
}

// Ulrich's formula for symmetric distributions with alpha > 1/2 (Devroye, IX.4.1).
double DrawUlrich(double alpha, CounterRandom& random) {
  const double radius = std::sqrt(1.0 - std::pow(random.Uniform(), 2.0 / (2.0 * alpha - 1.0)));
  return 0.5 + 0.5 * radius * std::cos(kTwoPi * random.Uniform());
}

}  // namespace

double DrawBeta(double alpha, CounterRandom& random) {
  return alpha <= 0.5 ? DrawJohnk(alpha, random) : DrawUlrich(alpha, random);
}

}  // namespace ssl
