// SPDX-License-Identifier: Apache-2.0
//
// 8-bit CIE L*a*b* of sRGB colours under the white D65, with the results of OpenCV's cvtColor(COLOR_RGB2LAB): L is
// scaled from 0 ... 100 to 0 ... 255, a and b are shifted by 128. Equal to OpenCV 5 in every pixel. A pure function.
#ifndef SSL_DATA_IMAGE_LAB_H_
#define SSL_DATA_IMAGE_LAB_H_

#include <cstdint>

#include "ssl/data/image/image.h"

namespace ssl {

// source: 3 channels (red, green, blue), or 1 (grey). lab: another image, of 3 channels.
void ConvertToLab(const Image& source, Image* lab);

// The way back, to look at: 8 bits of a and b leave up to 24 levels where a channel is close to 0, and 1 or 2
// elsewhere. `pixels` of 3 bytes each; rgb may be lab.
void ConvertFromLab(const uint8_t* lab, int64_t pixels, uint8_t* rgb);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_LAB_H_
