// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/pixel_order.h"

#include <algorithm>
#include <cstring>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

constexpr int kBlock = 16;
using Bytes [[gnu::vector_size(kBlock)]] = uint8_t;

}  // namespace

// Five pixels at once, the last 15 bytes of a block.
SSL_VECTORIZE
void MirrorColour(const uint8_t* pixels, int count, uint8_t* __restrict mirrored) {
  int i = 0;
  for (; i + 6 <= count; i += 5) {
    Bytes block;
    std::memcpy(&block, pixels + 3 * (count - i) - kBlock, kBlock);
    block = __builtin_shufflevector(block, block, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    std::memcpy(mirrored + 3 * i, &block, kBlock);
  }
  for (; i < count; ++i) std::copy_n(pixels + 3 * (count - 1 - i), 3, mirrored + 3 * i);
}

SSL_VECTORIZE
void RepeatGrey(const uint8_t* pixels, int count, uint8_t* __restrict repeated) {
  int i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Bytes block;
    std::memcpy(&block, pixels + i, kBlock);
    const Bytes first = __builtin_shufflevector(block, block, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5);
    const Bytes second = __builtin_shufflevector(block, block, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10);
    const Bytes third =
        __builtin_shufflevector(block, block, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15);
    std::memcpy(repeated + 3 * i, &first, kBlock);
    std::memcpy(repeated + 3 * i + kBlock, &second, kBlock);
    std::memcpy(repeated + 3 * i + 2 * kBlock, &third, kBlock);
  }
  for (; i < count; ++i) std::fill_n(repeated + 3 * i, 3, pixels[i]);
}

}  // namespace ssl
