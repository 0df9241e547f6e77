// SPDX-License-Identifier: Apache-2.0
//
// Every number of pixels, drawn from a seed, against a loop over single pixels.
#include "ssl/data/transforms/color_planes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr uint8_t kUntouched = 77;

using Pixel = std::array<uint8_t, 3>;
using PlanesFunction = std::function<void(ColorPlanes* planes)>;
using PixelFunction = std::function<Pixel(const Pixel& pixel)>;

std::vector<uint8_t> DrawBytes(int64_t size) {
  std::mt19937_64 random(kSeed + size);
  std::vector<uint8_t> bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random()); });
  return bytes;
}

Pixel PixelAt(const std::vector<uint8_t>& pixels, int i) {
  return {pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]};
}

int GreyOf(const Pixel& pixel) { return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16; }

uint8_t Blend(int level, float factor, int value) {
  const float scaled = factor * static_cast<float>(value - level);
  return static_cast<uint8_t>(std::clamp(static_cast<int>(static_cast<float>(level) + scaled), 0, 255));
}

// `change` on 1 ... kPixels pixels does to each what `expected` does, and touches none behind the last.
void CheckEachPixel(const PlanesFunction& change, const PixelFunction& expected) {
  for (int count = 1; count <= ColorPlanes::kPixels; ++count) {
    const std::vector<uint8_t> source = DrawBytes(3 * count);
    std::vector<uint8_t> result(3 * count + 48, kUntouched);
    ColorPlanes planes;
    ReadPlanes(source.data(), count, &planes);
    change(&planes);
    WritePlanes(planes, result.data());
    for (int i = 0; i < count; ++i) ASSERT_EQ(PixelAt(result, i), expected(PixelAt(source, i))) << i << " of " << count;
    for (int i = 3 * count; i < 3 * count + 48; ++i) ASSERT_EQ(result[i], kUntouched) << i << " of " << count;
  }
}

TEST(ColorPlanes, ReadAndWritten_AreThePixelsAgain) {
  CheckEachPixel([](ColorPlanes*) {}, [](const Pixel& pixel) { return pixel; });
}

TEST(ColorPlanes, Channels_GoIntoTheirPlanes) {
  const auto invert_green = [](ColorPlanes* planes) {
    for (int i = 0; i < planes->count; ++i) planes->green[i] = static_cast<uint8_t>(~planes->green[i]);
  };
  CheckEachPixel(invert_green, [](const Pixel& pixel) {
    return Pixel{pixel[0], static_cast<uint8_t>(~pixel[1]), pixel[2]};
  });
}

TEST(ColorPlanes, BlendWithLevel_IsThatOfEachValue) {
  for (const float factor : {0.0f, 0.37f, 1.0f, 1.8f, 1e4f}) {
    for (const int level : {0, 101, 255}) {
      CheckEachPixel([=](ColorPlanes* planes) { BlendWithLevel(level, factor, planes); },
                     [=](const Pixel& pixel) {
                       return Pixel{Blend(level, factor, pixel[0]), Blend(level, factor, pixel[1]),
                                    Blend(level, factor, pixel[2])};
                     });
    }
  }
}

TEST(ColorPlanes, BlendWithGrey_IsThatOfEachPixel) {
  for (const float factor : {0.0f, 0.37f, 1.0f, 1.8f, 1e4f}) {
    CheckEachPixel(
        [=](ColorPlanes* planes) { BlendWithGrey(factor, planes); },
        [=](const Pixel& pixel) {
          const int grey = GreyOf(pixel);
          return Pixel{Blend(grey, factor, pixel[0]), Blend(grey, factor, pixel[1]), Blend(grey, factor, pixel[2])};
        });
  }
}

// What a hue becomes is checked by adjust_test, for a third of all colours.
TEST(ColorPlanes, TurnHues_OfManyPixels_IsThatOfEachAlone) {
  CheckEachPixel([](ColorPlanes* planes) { TurnHues(-37, planes); },
                 [](Pixel pixel) {
                   ColorPlanes alone;
                   ReadPlanes(pixel.data(), 1, &alone);
                   TurnHues(-37, &alone);
                   WritePlanes(alone, pixel.data());
                   return pixel;
                 });
}

TEST(ColorPlanes, Greys_AreWrittenAndSummed) {
  for (int count = 1; count <= ColorPlanes::kPixels; ++count) {
    const std::vector<uint8_t> source = DrawBytes(3 * count);
    std::vector<uint8_t> greys(count + 64, kUntouched);
    ColorPlanes planes;
    ReadPlanes(source.data(), count, &planes);
    WriteGreys(planes, greys.data());
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(greys[i], GreyOf(PixelAt(source, i))) << i << " of " << count;
      sum += greys[i];
    }
    ASSERT_EQ(greys[count], kUntouched);
    ASSERT_EQ(SumOfGreys(planes), sum);
    ASSERT_EQ(SumOf(greys.data(), count), sum);
  }
}

}  // namespace
}  // namespace ssl
