// SPDX-License-Identifier: Apache-2.0
//
// PNG files of 16 bits, which the library's encoder does not write.
#ifndef SSL_DATA_TESTING_PNG_OF_16_BITS_H_
#define SSL_DATA_TESTING_PNG_OF_16_BITS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ssl {

// A square of `side` x `side` pixels that are all alike: 1 value is grey, 2 are grey and alpha, 3 are red, green and
// blue.
std::string PngOf16Bits(int side, const std::vector<uint16_t>& pixel);

}  // namespace ssl

#endif  // SSL_DATA_TESTING_PNG_OF_16_BITS_H_
