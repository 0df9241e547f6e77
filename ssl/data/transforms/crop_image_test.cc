// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/crop_image.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(CropImage, EveryBoxAroundASmallImage_EqualsTheNaiveCrop) {
  for (int channels : {1, 3}) {
    Image source;
    uint8_t* pixels = source.Allocate(3, 4, channels);
    for (int i = 0; i < 12 * channels; ++i) pixels[i] = static_cast<uint8_t>(i + 1);
    Image result;
    for (int top = -5; top < 6; ++top) {
      for (int left = -6; left < 7; ++left) {
        for (int side = 1; side < 8; ++side) {
          CropImage(source, {top, left, side, side + 1}, &result);
          ASSERT_EQ(result.size_bytes(), side * (side + 1) * channels);
          for (int y = 0; y < side; ++y) {
            for (int i = 0; i < (side + 1) * channels; ++i) {
              const int from_y = top + y;
              const int from_x = left + i / channels;
              const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 4;
              const int expected = inside ? source.row(from_y)[from_x * channels + i % channels] : 0;
              ASSERT_EQ(result.row(y)[i], expected) << top << " " << left << " " << side << " " << y << " " << i;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ssl
