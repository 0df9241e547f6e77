// SPDX-License-Identifier: Apache-2.0
//
// What is needed of an image, asked for when its size is known and before its pixels are: a decoder may leave the rest
// out.
#ifndef SSL_DATA_IMAGE_NEEDED_REGION_H_
#define SSL_DATA_IMAGE_NEEDED_REGION_H_

#include "absl/functional/function_ref.h"
#include "ssl/data/image/crop_box.h"

namespace ssl {

// The box, not empty and inside an image of this height and width.
using NeededRegion = absl::FunctionRef<CropBox(int height, int width)>;

inline CropBox WholeImage(int height, int width) { return {0, 0, height, width}; }

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_NEEDED_REGION_H_
