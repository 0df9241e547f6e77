// SPDX-License-Identifier: Apache-2.0
//
// Pillow's GaussianBlur on 8-bit images: three passes of a box filter along the rows and three along the columns,
// each rounded to 8 bits; pixels beyond the border repeat the border. A box reaches `radius` whole pixels to both
// sides and a part of one more (Gwosdek et al., "Theoretical Foundations of Gaussian Convolution by Extended Box
// Filtering", SSVM 2011). Equal to Pillow 13 in every pixel.
#ifndef SSL_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_
#define SSL_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_

#include <cstdint>
#include <vector>

#include "ssl/data/image/image.h"

namespace ssl {

// Kept between calls, so that a blur allocates nothing in the steady state.
struct BlurBuffers {
  Image rows;                  // the result of a vertical pass
  std::vector<uint8_t> line;   // a row with its border, twice
  std::vector<uint32_t> sums;  // of the pixels in a wide box, one row
};

// The box that is repeated three times: output = (weight * sum of the inner pixels + edge_weight * the two outer
// ones) / 2^24, rounded.
struct BlurBox {
  int radius = 0;  // of the inner pixels
  uint32_t weight = 0;
  uint32_t edge_weight = 0;
};

// sigma: of the Gaussian, in pixels, at least 0.
BlurBox BlurBoxFor(float sigma);

// Blurs in place. Any number of channels.
void GaussianBlur(float sigma, BlurBuffers* buffers, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_
