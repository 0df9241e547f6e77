// SPDX-License-Identifier: Apache-2.0
//
// TurnHues of color_planes.h, with its results, by instructions that Intel's Ice Lake, AMD's Zen 4 and later processors
// have. A pure function.
#ifndef SSL_DATA_TRANSFORMS_HUE_AVX512_H_
#define SSL_DATA_TRANSFORMS_HUE_AVX512_H_

#include "ssl/data/transforms/color_planes.h"

namespace ssl {

// steps: 256 are the whole wheel. False, and nothing is changed, where the processor lacks the instructions. Else what
// lies in the planes behind the pixels in use is unspecified.
bool TurnHuesByAvx512(int steps, ColorPlanes* planes);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_HUE_AVX512_H_
