// SPDX-License-Identifier: Apache-2.0
//
// How far an accuracy can be from the one on all images of the kind, because it was measured on some of them: the 95 %
// score interval of Wilson (1927), which holds for few samples and for accuracies near 0 and 1, too.
#ifndef SSL_METERS_WILSON_INTERVAL_H_
#define SSL_METERS_WILSON_INTERVAL_H_

#include <cstdint>

namespace ssl {

struct AccuracyInterval {
  double low = 0.0;  // fractions in [0, 1]
  double high = 1.0;
};

// accuracy: a fraction in [0, 1], measured on `samples`, at least 1, that are drawn independently.
AccuracyInterval WilsonInterval(double accuracy, int64_t samples);

}  // namespace ssl

#endif  // SSL_METERS_WILSON_INTERVAL_H_
