// SPDX-License-Identifier: Apache-2.0
//
// The pixels of a view, as a batch holds them that is normalised later: mirrored if it says so, and a grey image
// repeated in all channels. Through the view's table they are what WriteViewFloats writes. A pure function.
#ifndef SSL_DATA_LOADER_VIEW_PIXELS_H_
#define SSL_DATA_LOADER_VIEW_PIXELS_H_

#include <cstdint>

#include "ssl/data/sample.h"

namespace ssl {

// output: height x width x channels. channels: 1 or 3, at least those of the image.
void WriteViewPixels(const View& view, int channels, uint8_t* output);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_VIEW_PIXELS_H_
