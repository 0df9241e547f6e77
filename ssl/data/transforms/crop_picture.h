// SPDX-License-Identifier: Apache-2.0
//
// Cutting a box out of a picture, with nothing resized.
#ifndef SSL_DATA_TRANSFORMS_CROP_PICTURE_H_
#define SSL_DATA_TRANSFORMS_CROP_PICTURE_H_

#include "ssl/data/crop_box.h"
#include "ssl/data/image.h"

namespace ssl {

// box: may reach beyond the picture, where the result is black (0); height and width at least 1. result: another image.
void CropPicture(const Image& source, const CropBox& box, Image* result);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_CROP_PICTURE_H_
