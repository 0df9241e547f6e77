// SPDX-License-Identifier: Apache-2.0
//
// What a random crop is drawn by, and the size that it is scaled to.
#ifndef SSL_DATA_TRANSFORMS_RANDOM_CROP_RULE_H_
#define SSL_DATA_TRANSFORMS_RANDOM_CROP_RULE_H_

#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/resample.h"

namespace ssl {

struct RandomCropRule {
  int height = 0;
  int width = 0;
  Interval scale = {0.08, 1.0};
  Interval ratio = {3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
};

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_CROP_RULE_H_
