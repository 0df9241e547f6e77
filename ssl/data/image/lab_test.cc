// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/lab.h"

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

}  // namespace
}  // namespace ssl
