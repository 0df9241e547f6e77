// SPDX-License-Identifier: Apache-2.0
//
// A pass of a short box blur by instructions that Intel's Ice Lake, AMD's Zen 4 and later processors have. A pure
// function.
#ifndef SSL_DATA_TRANSFORMS_BLUR_AVX512_H_
#define SSL_DATA_TRANSFORMS_BLUR_AVX512_H_

#include <cstdint>

namespace ssl {

// output[i] is the box over taps[0][i], taps[1][i], ...: 2 * radius + 3 of them, `size` bytes each. The first and the
// last count edge_weight times, the others `weight` times, both in 2^-24; rounded. The weights add up to 1 at most.
// False, and nothing is written, where the processor lacks the instructions, there are fewer than 64 bytes, or the
// radius is above 1.
bool BlendTapsByAvx512(int radius, uint32_t weight, uint32_t edge_weight, const uint8_t* const* taps, int64_t size,
                       uint8_t* output);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_BLUR_AVX512_H_
