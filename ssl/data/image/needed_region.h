// SPDX-License-Identifier: Apache-2.0
//
// What is needed of an image, asked for when its size is known and before its pixels are: a decoder may leave the rest
// out.
#ifndef SSL_DATA_IMAGE_NEEDED_REGION_H_
#define SSL_DATA_IMAGE_NEEDED_REGION_H_

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "ssl/data/image/crop_box.h"

namespace ssl {

struct NeededPixels {
  CropBox box;  // not empty and inside the image, in its full coordinates
  // Everything cut out of the image is scaled down at least by this: 1, 2, 4 or 8. So an image of that fraction of the
  // size would do, though it has other pixels.
  int reduction = 1;
};

using NeededRegion = absl::FunctionRef<NeededPixels(int height, int width)>;

inline NeededPixels WholeImage(int height, int width) { return {{0, 0, height, width}}; }

// For one crop: `box`, which becomes height x width pixels.
inline NeededPixels NeededFor(const CropBox& box, int height, int width) {
  constexpr int kMostReduction = 8;
  NeededPixels needed = {box};
  while (needed.reduction < kMostReduction && box.height >= 2 * needed.reduction * height &&
         box.width >= 2 * needed.reduction * width) {
    needed.reduction *= 2;
  }
  return needed;
}

// For both.
inline NeededPixels Union(const NeededPixels& a, const NeededPixels& b) {
  return {Union(a.box, b.box), std::min(a.reduction, b.reduction)};
}

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_NEEDED_REGION_H_
