// SPDX-License-Identifier: Apache-2.0
//
// Every colour, against the function that every processor runs. Where the processor lacks the instructions, that this
// is said.
#include "ssl/data/transforms/hue_avx512.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_avx512.h"

namespace ssl {
namespace {

constexpr int kColors = 1 << 24;

void Fill(int first, ColorPlanes* planes) {
  planes->count = ColorPlanes::kPixels;
  for (int i = 0; i < planes->count; ++i) {
    planes->red[i] = static_cast<uint8_t>((first + i) >> 16);
    planes->green[i] = static_cast<uint8_t>((first + i) >> 8);
    planes->blue[i] = static_cast<uint8_t>(first + i);
  }
}

bool AreEqual(const ColorPlanes& a, const ColorPlanes& b) {
  return a.count == b.count && std::equal(a.red, a.red + a.count, b.red) &&
         std::equal(a.green, a.green + a.count, b.green) && std::equal(a.blue, a.blue + a.count, b.blue);
}

TEST(HueAvx512, EveryColor_TurnsAsOnEveryProcessor) {
  ColorPlanes planes, expected;
  for (const int steps : {0, -37, 100, 255}) {
    for (int first = 0; first < kColors; first += ColorPlanes::kPixels) {
      Fill(first, &planes);
      Fill(first, &expected);
      ASSERT_EQ(TurnHuesByAvx512(steps, &planes), HasPixelAvx512());
      if (HasPixelAvx512()) TurnHues(steps, &expected);
      ASSERT_TRUE(AreEqual(planes, expected)) << "a color from " << first << " on by " << steps;
    }
  }
}

TEST(HueAvx512, AnyNumberOfPixels_AreAllTurned) {
  ColorPlanes planes, expected;
  for (int count = 1; count <= ColorPlanes::kPixels; ++count) {
    Fill(5000011, &planes);
    Fill(5000011, &expected);
    planes.count = expected.count = count;
    if (TurnHuesByAvx512(60, &planes)) TurnHues(60, &expected);
    ASSERT_TRUE(AreEqual(planes, expected)) << count;
  }
}

}  // namespace
}  // namespace ssl
