// SPDX-License-Identifier: Apache-2.0
//
// A number in [0, 1] of the beta distribution with equal parameters, from which mixup draws its factors.
#ifndef SSL_DATA_COLLATORS_DRAW_BETA_H_
#define SSL_DATA_COLLATORS_DRAW_BETA_H_

#include "ssl/base/random.h"

namespace ssl {

// alpha: above 0. 1 is the uniform distribution; below 1 the ends are likely, above 1 the middle.
double DrawBeta(double alpha, CounterRandom& random);

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_DRAW_BETA_H_
