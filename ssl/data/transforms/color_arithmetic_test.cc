// SPDX-License-Identifier: Apache-2.0
//
// Colours as kernels compute them, one by one, beside the loops of the transforms.
#include "ssl/kernels/color_arithmetic.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "ssl/data/transforms/color_planes.h"

namespace ssl {
namespace {

constexpr int kColors = 1 << 24;

PixelColor ColorOf(int number) { return {number >> 16, (number >> 8) & 255, number & 255}; }

TEST(ColorArithmetic, EveryColor_TurnsAsInTheTransforms) {
  ColorPlanes planes;
  planes.count = ColorPlanes::kPixels;
  for (const int steps : {-37, 100}) {
    for (int first = 0; first < kColors; first += planes.count) {
      for (int i = 0; i < planes.count; ++i) {
        const PixelColor color = ColorOf(first + i);
        planes.red[i] = static_cast<uint8_t>(color.red);
        planes.green[i] = static_cast<uint8_t>(color.green);
        planes.blue[i] = static_cast<uint8_t>(color.blue);
      }
      TurnHues(steps, &planes);
      for (int i = 0; i < planes.count; ++i) {
        const PixelColor turned = TurnedHue(steps, ColorOf(first + i));
        const bool is_same =
            turned.red == planes.red[i] && turned.green == planes.green[i] && turned.blue == planes.blue[i];
        ASSERT_TRUE(is_same) << "colour " << first + i << " by " << steps;
      }
    }
  }
}

}  // namespace
}  // namespace ssl
