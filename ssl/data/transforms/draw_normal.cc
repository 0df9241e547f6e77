// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/draw_normal.h"

#include <cmath>

namespace ssl {

double DrawNormal(CounterRandom& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.Uniform()));  // the logarithm's argument is above 0
  return radius * std::cos(2.0 * 3.14159265358979323846 * random.Uniform());
}

}  // namespace ssl
