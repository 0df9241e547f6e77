// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/lab.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

TEST(LabGolden, EqualsOpenCvInEveryPixel) {
  const golden::CaseRunner runner = [](const golden::Case& golden_case) {
    Image lab;
    ConvertToLab(ToImage(golden_case.steps[0].Input("image")), &lab);
    EXPECT_EQ(LargestDifference(lab, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  };
  RunGolden("augment", "lab", runner, nullptr, kAugmentFolder);
}

TEST(Lab, GreyIsTheSameColour_AndHasNoHue) {
  Image grey, colour;
  uint8_t* grey_pixels = grey.Allocate(16, 16, 1);
  uint8_t* colour_pixels = colour.Allocate(16, 16, 3);
  for (int level = 0; level < 256; ++level) {
    grey_pixels[level] = static_cast<uint8_t>(level);
    for (int c = 0; c < 3; ++c) colour_pixels[3 * level + c] = static_cast<uint8_t>(level);
  }
  Image from_grey, from_colour;
  ConvertToLab(grey, &from_grey);
  ConvertToLab(colour, &from_colour);
  EXPECT_EQ(LargestDifference(from_grey, from_colour), 0);
  for (int level = 0; level < 256; ++level) EXPECT_EQ(from_grey.pixels()[3 * level + 1], 128) << level;
}

TEST(Lab, TheWayBack_IsCloseToWhatItWasMadeOf) {
  const uint8_t colours[][3] = {{0, 0, 0},   {128, 128, 128}, {255, 255, 255}, {255, 0, 0},    {0, 255, 0},
                                {0, 0, 255}, {255, 255, 0},   {0, 255, 255},   {200, 100, 50}, {60, 90, 140}};
  for (const auto& colour : colours) {
    Image rgb, lab;
    std::copy(colour, colour + 3, rgb.Allocate(1, 1, 3));
    ConvertToLab(rgb, &lab);
    uint8_t back[3];
    ConvertFromLab(lab.pixels(), 1, back);
    const bool is_plain = colour[0] * colour[1] * colour[2] > 0;
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(back[c], colour[c], is_plain ? 2 : 24) << c;
  }
}

}  // namespace
}  // namespace ssl
