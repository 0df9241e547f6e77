// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/color_jitter.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

void CheckGolden(const std::string& op, void (*adjust)(double, Image*)) {
  for (const golden::Case& golden_case : GoldenCases("image", op)) {
    SCOPED_TRACE(golden_case.name);
    Image image = ToImage(golden_case.steps[0].inputs.at("image"));

    adjust(golden_case.Double("factor"), &image);

    EXPECT_EQ(LargestDifference(image, ToImage(golden_case.steps[0].outputs.at("image").tensor)), 0);
  }
}

TEST(ColorJitterGolden, BrightnessEqualsPillowsInEveryPixel) { CheckGolden("adjust_brightness", &AdjustBrightness); }

TEST(ColorJitterGolden, ContrastEqualsPillowsInEveryPixel) { CheckGolden("adjust_contrast", &AdjustContrast); }

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

TEST(ColorJitter, GreyPicture_ChangesAsTheSameColourPicture) {
  for (double factor : {0.0, 0.3, 1.0, 1.7}) {
    Image grey = OnePicture(5, 6, 1, 3).view(0).image;
    Image colour;
    uint8_t* pixels = colour.Allocate(5, 6, 3);
    for (int i = 0; i < 90; ++i) pixels[i] = grey.pixels()[i / 3];

    AdjustContrast(factor, &grey);
    AdjustContrast(factor, &colour);

    for (int i = 0; i < 90; ++i) ASSERT_EQ(colour.pixels()[i], grey.pixels()[i / 3]) << factor;
  }
}

TEST(ColorJitter, FactorOne_ChangesNothing) {
  Image image = OnePicture(16, 16, 1).view(0).image;
  const std::vector<uint8_t> before = Pixels(image);
  AdjustBrightness(1.0, &image);
  AdjustContrast(1.0, &image);
  EXPECT_EQ(Pixels(image), before);
}

TEST(ColorJitter, ContrastZero_IsTheRoundedMeanEverywhere) {
  Image image;
  uint8_t* pixels = image.Allocate(1, 4, 1);
  for (int i = 0; i < 4; ++i) pixels[i] = static_cast<uint8_t>(10 + i);  // mean 11.5
  AdjustContrast(0.0, &image);
  EXPECT_EQ(Pixels(image), std::vector<uint8_t>(4, 12));
}

TEST(ColorJitter, Strength_BoundsTheFactor) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, brightness: 0.4}"));
  int darkest = 255;
  int brightest = 0;
  for (int index = 0; index < 300; ++index) {
    Sample sample;
    sample.ResetViews(1);
    *sample.view(0).image.Allocate(1, 1, 1) = 100;
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    darkest = std::min<int>(darkest, sample.view(0).image.pixels()[0]);
    brightest = std::max<int>(brightest, sample.view(0).image.pixels()[0]);
  }
  EXPECT_GE(darkest, 60);
  EXPECT_LE(darkest, 62);
  EXPECT_LE(brightest, 140);
  EXPECT_GE(brightest, 137);
}

TEST(ColorJitter, RangeOfFactors_IsTakenAsItIs) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, brightness: [0.5, 0.5]}"));
  Sample sample;
  sample.ResetViews(1);
  *sample.view(0).image.Allocate(1, 1, 1) = 101;
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(sample.view(0).image.pixels()[0], 50);
}

TEST(ColorJitter, Order_IsRandom) {
  // Doubling the brightness and flattening to the mean do not commute, because values above 255 are cut.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, brightness: [2, 2], contrast: [0, 0]}"));
  bool saw_contrast_first = false;
  bool saw_brightness_first = false;
  for (int index = 0; index < 40; ++index) {
    Sample sample;
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(1, 2, 1);
    pixels[0] = 0;
    pixels[1] = 200;
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    saw_contrast_first |= sample.view(0).image.pixels()[0] == 200;    // mean 100, doubled
    saw_brightness_first |= sample.view(0).image.pixels()[0] == 128;  // mean of 0 and 255
  }
  EXPECT_TRUE(saw_contrast_first);
  EXPECT_TRUE(saw_brightness_first);
}

TEST(ColorJitter, ProbabilityZero_ChangesNothing) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, brightness: 0.8, contrast: 0.8, p: 0.0}"));
  for (int index = 0; index < 20; ++index) {
    Sample sample = OnePicture(4, 4, 1);
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    EXPECT_EQ(Pixels(sample.view(0).image), before);
  }
}

TEST(ColorJitter, SaturationAndHue_AreRefusedUnlessZero) {
  EXPECT_OK(MakeTransform("{name: ColorJitter, brightness: 0.4, saturation: 0.0, hue: 0}"));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nsaturation: 0.2"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("run.yaml:2: TRANSFORMS.ColorJitter.saturation is '0.2', expected 0")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nhue: [-0.1, 0.1]"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("hue is a list, expected 0")));
}

TEST(ColorJitter, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ColorJitter\nbrightness: -1"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ColorJitter.brightness is '-1'")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\ncontrast: [1.2, 0.8]"),
              StatusIs(invalid, HasSubstr("contrast is a list")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\ncontrast: much"), StatusIs(invalid, HasSubstr("contrast is 'much'")));
}

}  // namespace
}  // namespace ssl
