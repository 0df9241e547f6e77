// SPDX-License-Identifier: Apache-2.0
//
// A table of bytes looked up for many at once, by instructions that Intel's Ice Lake, AMD's Zen 4 and later processors
// have. A pure function.
#ifndef SSL_DATA_TRANSFORMS_LOOK_UP_BYTES_H_
#define SSL_DATA_TRANSFORMS_LOOK_UP_BYTES_H_

#include <cstdint>

namespace ssl {

constexpr int kByteValues = 256;

// Each of `count` bytes becomes table[byte]; table: kByteValues of them. Slow where HasPixelAvx512() is false.
void LookUpBytes(const uint8_t* table, uint8_t* bytes, int64_t count);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_LOOK_UP_BYTES_H_
