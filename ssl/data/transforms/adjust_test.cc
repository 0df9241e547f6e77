// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/adjust.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

using Rgb = std::array<uint8_t, 3>;

Image InputOf(const golden::Case& golden_case) { return ToImage(golden_case.steps[0].Input("image")); }
Image OutputOf(const golden::Case& golden_case) { return ToImage(golden_case.steps[0].Expected("image").tensor); }

void CheckGolden(const std::string& op, void (*adjust)(double, Image*)) {
  RunGolden("image", op, [&](const golden::Case& golden_case) {
    Image image = InputOf(golden_case);

    adjust(golden_case.DoubleIn("factor", -0.5, 1e6), &image);

    EXPECT_EQ(LargestDifference(image, OutputOf(golden_case)), 0);
  });
}

TEST(AdjustGolden, BrightnessEqualsPillowsInEveryPixel) { CheckGolden("adjust_brightness", &AdjustBrightness); }

TEST(AdjustGolden, ContrastEqualsPillowsInEveryPixel) { CheckGolden("adjust_contrast", &AdjustContrast); }

TEST(AdjustGolden, SaturationEqualsPillowsInEveryPixel) { CheckGolden("adjust_saturation", &AdjustSaturation); }

TEST(AdjustGolden, HueEqualsTorchvisionsInEveryPixel) { CheckGolden("adjust_hue", &AdjustHue); }

TEST(AdjustGolden, ChainOfAllFourEqualsTorchvisionsInEveryPixel) {
  const std::array<void (*)(double, Image*), 4> adjust = {AdjustBrightness, AdjustContrast, AdjustSaturation,
                                                          AdjustHue};
  const std::array<std::string, 4> names = {"brightness", "contrast", "saturation", "hue"};
  RunGolden("image", "color_jitter", [&](const golden::Case& golden_case) {
    Image image = InputOf(golden_case);

    for (int64_t i : golden_case.Ints("order")) adjust.at(i)(golden_case.DoubleIn(names.at(i), -0.5, 1e6), &image);

    EXPECT_EQ(LargestDifference(image, OutputOf(golden_case)), 0);
  });
}

TEST(AdjustGolden, GreyEqualsPillowsInEveryPixel) {
  RunGolden("image", "grayscale", [&](const golden::Case& golden_case) {
    const Image expected = OutputOf(golden_case);  // one channel, or several equal ones
    Image grey;

    ConvertToGrey(InputOf(golden_case), &grey);

    const int channels = expected.channels();
    ASSERT_EQ(grey.size_bytes() * channels, expected.size_bytes());
    for (int64_t i = 0; i < expected.size_bytes(); ++i) {
      ASSERT_EQ(grey.pixels()[i / channels], expected.pixels()[i]) << i;
    }
  });
}

uint8_t ToByte(double value) { return static_cast<uint8_t>(std::clamp(static_cast<int>(value), 0, 255)); }

// Pillow's conversion of RGB to HSV, branch by branch in its floating types.
Rgb NaiveHsv(const Rgb& rgb) {
  const uint8_t hi = *std::max_element(rgb.begin(), rgb.end());
  const uint8_t lo = *std::min_element(rgb.begin(), rgb.end());
  if (hi == lo) return {0, 0, hi};
  const float range = static_cast<float>(hi - lo);
  std::array<float, 3> below;
  for (int c = 0; c < 3; ++c) below[c] = static_cast<float>(hi - rgb[c]) / range;
  float hue;
  if (rgb[0] == hi) {
    hue = below[2] - below[1];
  } else if (rgb[1] == hi) {
    hue = static_cast<float>(2.0 + below[0] - below[2]);
  } else {
    hue = static_cast<float>(4.0 + below[1] - below[0]);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {ToByte(hue * 255.0), ToByte(range / static_cast<float>(hi) * 255.0), hi};
}

// And back.
Rgb NaiveRgb(const Rgb& hsv) {
  if (hsv[1] == 0) return {hsv[2], hsv[2], hsv[2]};
  const double sector = std::floor(hsv[0] * 6.0 / 255.0);
  const float part = static_cast<float>(hsv[0] * 6.0 / 255.0 - sector);
  const float saturation = static_cast<float>(hsv[1] / 255.0);
  const uint8_t v = hsv[2];
  const uint8_t p = ToByte(std::round(v * (1.0 - saturation)));
  const uint8_t q = ToByte(std::round(v * (1.0 - saturation * part)));
  const uint8_t t = ToByte(std::round(v * (1.0 - saturation * (1.0 - part))));
  const std::array<Rgb, 6> sectors = {{{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  return sectors[static_cast<int>(sector) % 6];
}

TEST(Adjust, HueOfManyColours_EqualsTheNaiveConversionThereAndBack) {
  // Every third level of two channels and all levels of the third, in each of the three roles.
  for (int role = 0; role < 3; ++role) {
    Image image;
    uint8_t* pixels = image.Allocate(86 * 86, 256, 3);
    std::vector<Rgb> colours;
    for (int i = 0; i < 86 * 86 * 256; ++i) {
      Rgb colour;
      colour[role] = static_cast<uint8_t>(i % 256);
      colour[(role + 1) % 3] = static_cast<uint8_t>(i / 256 % 86 * 3);
      colour[(role + 2) % 3] = static_cast<uint8_t>(i / 256 / 86 * 3);
      colours.push_back(colour);
      std::copy(colour.begin(), colour.end(), pixels + 3 * i);
    }
    const int steps = 85 * role - 100;

    AdjustHue((steps + 0.5 * (steps < 0 ? -1 : 1)) / 255.0, &image);

    for (size_t i = 0; i < colours.size(); ++i) {
      Rgb hsv = NaiveHsv(colours[i]);
      hsv[0] = static_cast<uint8_t>(hsv[0] + steps);
      const Rgb expected = NaiveRgb(hsv);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), image.pixels() + 3 * i)) << role << " " << i;
    }
  }
}

Image MakeImage(int height, int width, int channels) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(3 + 7 * i + i / 50);
  return image;
}

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

TEST(Adjust, GreyImage_ChangesAsTheSameColourImage) {
  for (auto adjust : {AdjustBrightness, AdjustContrast, AdjustSaturation}) {
    for (double factor : {0.0, 0.3, 1.0, 1.7}) {
      Image grey = MakeImage(5, 6, 1);
      Image colour;
      uint8_t* pixels = colour.Allocate(5, 6, 3);
      for (int i = 0; i < 90; ++i) pixels[i] = grey.pixels()[i / 3];

      adjust(factor, &grey);
      adjust(factor, &colour);
      AdjustHue(0.3, &grey);
      AdjustHue(0.3, &colour);

      for (int i = 0; i < 90; ++i) ASSERT_EQ(colour.pixels()[i], grey.pixels()[i / 3]) << factor;
    }
  }
}

TEST(Adjust, FactorOne_ChangesNothing) {
  for (int channels : {1, 3}) {
    Image image = MakeImage(16, 17, channels);
    const std::vector<uint8_t> before = Pixels(image);
    for (auto adjust : {AdjustBrightness, AdjustContrast, AdjustSaturation}) adjust(1.0, &image);
    EXPECT_EQ(Pixels(image), before);
  }
}

TEST(Adjust, ContrastZero_IsTheRoundedMeanEverywhere) {
  Image image;
  uint8_t* pixels = image.Allocate(1, 4, 1);
  for (int i = 0; i < 4; ++i) pixels[i] = static_cast<uint8_t>(10 + i);  // mean 11.5
  AdjustContrast(0.0, &image);
  EXPECT_EQ(Pixels(image), std::vector<uint8_t>(4, 12));
}

TEST(Adjust, HugeFactor_LeavesTheExtremesOnly) {
  Image image;
  uint8_t* pixels = image.Allocate(1, 3, 1);
  pixels[0] = 100, pixels[1] = 102, pixels[2] = 101;
  AdjustContrast(1e30, &image);
  EXPECT_EQ(Pixels(image), (std::vector<uint8_t>{0, 255, 101}));
}

TEST(Adjust, ReduceToGrey_LeavesOneChannelAndAGreyImageAlone) {
  Image colour = MakeImage(3, 4, 3);
  Image expected;
  ConvertToGrey(colour, &expected);
  Image scratch;

  ReduceToGrey(&scratch, &colour);
  EXPECT_EQ(LargestDifference(colour, expected), 0);
  ReduceToGrey(&scratch, &colour);
  EXPECT_EQ(LargestDifference(colour, expected), 0);
}

TEST(Adjust, LentImage_IsNotChanged) {
  const Image original = MakeImage(4, 4, 3);
  const std::vector<uint8_t> before = Pixels(original);
  for (auto adjust : {AdjustBrightness, AdjustContrast, AdjustSaturation, AdjustHue}) {
    Image view;
    view.Borrow(original.pixels(), 4, 4, 3);
    adjust(0.4, &view);
    EXPECT_NE(Pixels(view), before);
    EXPECT_EQ(Pixels(original), before);
  }
}

}  // namespace
}  // namespace ssl
