// SPDX-License-Identifier: Apache-2.0
//
// Cutting a box out of an image, with nothing resized.
#ifndef SSL_DATA_TRANSFORMS_CROP_IMAGE_H_
#define SSL_DATA_TRANSFORMS_CROP_IMAGE_H_

#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"

namespace ssl {

// box: may reach beyond the image, where the result is black (0); height and width at least 1. result: another image.
void CropImage(const Image& source, const CropBox& box, Image* result);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_CROP_IMAGE_H_
