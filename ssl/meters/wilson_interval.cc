// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/wilson_interval.h"

#include <algorithm>
#include <cmath>

namespace ssl {

AccuracyInterval WilsonInterval(double accuracy, int64_t samples) {
  constexpr double kDeviations = 1.959963984540054;  // between which 95 % of a normal distribution lie
  const double n = static_cast<double>(samples);
  const double square = kDeviations * kDeviations;
  const double center = (accuracy + square / (2.0 * n)) / (1.0 + square / n);
  const double half =
      kDeviations / (1.0 + square / n) * std::sqrt(accuracy * (1.0 - accuracy) / n + square / (4.0 * n * n));
  return {std::max(0.0, center - half), std::min(1.0, center + half)};
}

}  // namespace ssl
