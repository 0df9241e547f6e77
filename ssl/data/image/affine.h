// SPDX-License-Identifier: Apache-2.0
//
// Affine maps of 8-bit images, with the results of Pillow's Image.transform(AFFINE) and Image.rotate without expand:
// the result has the source's size, and what comes from outside the source has one level. Equal to Pillow 13 in every
// pixel (affine_test). Pure functions.
#ifndef SSL_DATA_IMAGE_AFFINE_H_
#define SSL_DATA_IMAGE_AFFINE_H_

#include <array>
#include <cstdint>

#include "ssl/data/image/image.h"

namespace ssl {

// [a, b, c, d, e, f]: the pixel whose centre is (x, y) comes from (a x + b y + c, d x + e y + f) of the source.
using AffineMap = std::array<double, 6>;

enum class AffineSampling {
  kNearest,
  kBilinear,
  kBicubic,  // cubic convolution with a = -1 and, as in Pillow, values cut to whole numbers
};

// The map that turns an image by `degrees`, counter-clockwise, around its middle.
AffineMap RotationMap(int height, int width, double degrees);

// source: sides below 2^15. fill: of every channel outside the source. result: another image.
void TransformAffine(const Image& source, const AffineMap& map, AffineSampling sampling, uint8_t fill, Image* result);

// Whole turns, half turns and, of squares, quarter turns keep every pixel. result: another image.
void RotateImage(const Image& source, double degrees, AffineSampling sampling, uint8_t fill, Image* result);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_AFFINE_H_
