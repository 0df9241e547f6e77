// SPDX-License-Identifier: Apache-2.0
//
// Where a crop lies in an image, and torchvision's rule for drawing one at random. Pure functions.
#ifndef SSL_DATA_IMAGE_CROP_BOX_H_
#define SSL_DATA_IMAGE_CROP_BOX_H_

#include "ssl/base/random.h"

namespace ssl {

// In pixels.
struct CropBox {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

// The smallest box that holds both, which are not empty.
CropBox Union(const CropBox& a, const CropBox& b);

// The pixels that `box` touches in an image of one over `reduction` of the size.
CropBox ReducedBox(const CropBox& box, int reduction);

struct Interval {
  double lo = 0.0;
  double hi = 0.0;
};

// RandomResizedCrop.get_params of torchvision: up to 10 tries of an area (uniform in `scale`, a fraction of the
// image's area) and an aspect ratio width / height (log-uniform in `ratio`); if none fits, the largest centred
// crop whose ratio lies in `ratio`. height, width >= 1; 0 < lo <= hi in both intervals.
CropBox DrawCropBox(CounterRandom& random, int height, int width, const Interval& scale, const Interval& ratio);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_CROP_BOX_H_
