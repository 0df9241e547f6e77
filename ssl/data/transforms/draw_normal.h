// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_DATA_TRANSFORMS_DRAW_NORMAL_H_
#define SSL_DATA_TRANSFORMS_DRAW_NORMAL_H_

#include "ssl/base/random.h"

namespace ssl {

// A number of the normal distribution with mean 0 and variance 1, by the method of Box and Muller; takes four words.
double DrawNormal(CounterRandom& random);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_DRAW_NORMAL_H_
