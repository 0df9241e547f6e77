// SPDX-License-Identifier: Apache-2.0
//
// Pixels of a row of an image, in the order and number in which a batch has them. Pure functions.
#ifndef SSL_DATA_LOADER_PIXEL_ORDER_H_
#define SSL_DATA_LOADER_PIXEL_ORDER_H_

#include <cstdint>

namespace ssl {

// Pixel i of `mirrored` is pixel count - 1 - i of `pixels`, of three values each. The two do not overlap.
void MirrorColour(const uint8_t* pixels, int count, uint8_t* __restrict mirrored);

// Each of `count` grey pixels becomes three equal values. The two do not overlap.
void RepeatGrey(const uint8_t* pixels, int count, uint8_t* __restrict repeated);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_PIXEL_ORDER_H_
