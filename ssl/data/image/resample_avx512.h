// SPDX-License-Identifier: Apache-2.0
//
// The passes of resample_passes.h, with their results, by instructions that Intel's Ice Lake, AMD's Zen 4 and later
// processors have. Pure functions.
#ifndef SSL_DATA_IMAGE_RESAMPLE_AVX512_H_
#define SSL_DATA_IMAGE_RESAMPLE_AVX512_H_

#include <cstdint>

#include "ssl/data/image/resample_passes.h"

namespace ssl {

// False, and no more than a part of the result is written, where the processor lacks the instructions, a row is too
// short, or the windows of neighbouring pixels lie too far apart: a colour image that becomes smaller than 0.4 of its
// width.
bool FilterWidthByAvx512(PixelRows source, int height, int channels, const FilterTaps& filter, uint8_t* result);

// False, and nothing is written, where the processor lacks the instructions, a row is too short, or there are too many
// taps.
bool FilterHeightByAvx512(PixelRows source, int64_t row_size, const FilterTaps& filter, uint8_t* result);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_RESAMPLE_AVX512_H_
