// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/color_jitter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

Sample OneColour(int red, int green, int blue) {
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixel = sample.view(0).image.Allocate(1, 1, 3);
  pixel[0] = static_cast<uint8_t>(red);
  pixel[1] = static_cast<uint8_t>(green);
  pixel[2] = static_cast<uint8_t>(blue);
  return sample;
}

Image TwoColours() {
  Image image;
  const std::array<uint8_t, 6> values = {200, 90, 30, 10, 120, 180};
  std::copy(values.begin(), values.end(), image.Allocate(1, 2, 3));
  return image;
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
    Sample sample = OneImage(4, 4, 1);
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    EXPECT_EQ(Pixels(sample.view(0).image), before);
  }
}

// What is left of a red image: how far its grey value is from red says the saturation factor.
TEST(ColorJitter, Saturation_IsBoundedByItsStrength) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, saturation: [0.2, 0.5]}"));
  for (int index = 0; index < 100; ++index) {
    Sample sample = OneColour(200, 0, 0);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    const std::vector<uint8_t> rgb = Pixels(sample.view(0).image);
    const double factor = (rgb[0] - 60) / 140.0;  // 60: the grey value
    EXPECT_GE(factor, 0.2 - 0.01);
    EXPECT_LE(factor, 0.5 + 0.01);
    EXPECT_EQ(rgb[1], rgb[2]);
  }
}

TEST(ColorJitter, Hue_TurnsBothWaysByItsStrengthAtMost) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: ColorJitter, hue: 0.1}"));
  int towards_green = 0;
  int towards_blue = 0;
  for (int index = 0; index < 200; ++index) {
    Sample sample = OneColour(255, 0, 0);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    const std::vector<uint8_t> rgb = Pixels(sample.view(0).image);
    EXPECT_EQ(rgb[0], 255);
    // A tenth of the wheel is 0.6 of a sector.
    EXPECT_LE(rgb[1], 153);
    EXPECT_LE(rgb[2], 153);
    towards_green += rgb[1] > 0;
    towards_blue += rgb[2] > 0;
  }
  EXPECT_GT(towards_green, 60);
  EXPECT_GT(towards_blue, 60);
  EXPECT_GE(towards_green + towards_blue, 180);
}

TEST(ColorJitter, AllFour_ComeInAllOrders) {
  // Each factor is fixed, so that the result depends on the order alone.
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Transform> transform,
      MakeTransform("{name: ColorJitter, brightness: [1.9, 1.9], contrast: [0.3, 0.3], saturation: [1.7, 1.7], "
                    "hue: [0.2, 0.2]}"));
  std::set<std::vector<uint8_t>> expected;
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    Image image = TwoColours();
    for (int i : order) {
      if (i == 0) AdjustBrightness(1.9, &image);
      if (i == 1) AdjustContrast(0.3, &image);
      if (i == 2) AdjustSaturation(1.7, &image);
      if (i == 3) AdjustHue(0.2, &image);
    }
    expected.insert(Pixels(image));
  } while (std::next_permutation(order.begin(), order.end()));
  std::set<std::vector<uint8_t>> seen;
  for (int index = 0; index < 500; ++index) {
    Sample sample;
    sample.ResetViews(1);
    sample.view(0).image = TwoColours();
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    seen.insert(Pixels(sample.view(0).image));
  }
  EXPECT_GT(expected.size(), 12u);
  EXPECT_EQ(seen, expected);
}

TEST(ColorJitter, HueZero_IsLeftOut) {
  // Even a hue that turns by nothing would cost some levels.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, hue: 0, saturation: 0, contrast: [1, 1]}"));
  Sample sample = OneImage(8, 8, 3);
  const std::vector<uint8_t> before = Pixels(sample.view(0).image);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(Pixels(sample.view(0).image), before);
}

TEST(ColorJitter, GreyImages_AreLeftByHueAndSaturation) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ColorJitter, saturation: 0.8, hue: 0.5}"));
  for (int index = 0; index < 10; ++index) {
    Sample sample = OneImage(5, 5, 1);
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    EXPECT_EQ(Pixels(sample.view(0).image), before);
  }
}

// The intervals and orders that torchvision drew from.
TEST(ColorJitterGolden, ScaledJitterHasTorchvisionsIntervals) {
  RunGolden("crop_boxes", "color_jitter_params", [&](const golden::Case& golden_case) {
    const ColorJitter::Strength strength = ScaledColorJitter(golden_case.Double("strength"), 0.8);
    const std::vector<Interval> intervals = {strength.brightness, strength.contrast, strength.saturation, strength.hue};
    const std::vector<std::string> names = {"brightness", "contrast", "saturation", "hue"};
    for (size_t i = 0; i < names.size(); ++i) {
      const std::vector<double> expected = golden_case.Doubles(names[i], 2);
      EXPECT_NEAR(intervals[i].lo, expected[0], 1e-12) << names[i];
      EXPECT_NEAR(intervals[i].hi, expected[1], 1e-12) << names[i];
    }
    EXPECT_EQ(strength.probability, 0.8);
    for (const ConfigNode& draw : golden_case.steps[0].Expected("draws").value.items()) {
      ASSERT_EQ(draw.items().size(), 1 + intervals.size());
      std::vector<int64_t> order = golden::ToInts(draw.items()[0]);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3}));
      for (size_t i = 0; i < intervals.size(); ++i) {
        if (draw.items()[i + 1].is_null()) continue;  // nothing is drawn for a strength of 0
        ASSERT_OK_AND_ASSIGN(const double value, draw.items()[i + 1].AsDouble());
        EXPECT_GE(value, intervals[i].lo - 1e-6);
        EXPECT_LE(value, intervals[i].hi + 1e-6);
      }
    }
  });
}

TEST(ColorJitter, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ColorJitter\nbrightness: -1"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ColorJitter.brightness is '-1'")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\ncontrast: [1.2, 0.8]"),
              StatusIs(invalid, HasSubstr("contrast is a list")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\ncontrast: much"), StatusIs(invalid, HasSubstr("contrast is 'much'")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nsaturation: [1, a]"),
              StatusIs(invalid, HasSubstr("saturation is a list, expected a number of at least 0")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nhue: 0.6"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ColorJitter.hue is '0.6', expected a number in [0, "
                                          "0.5] or two increasing ones in [-0.5, 0.5]")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nhue: [-0.6, 0]"), StatusIs(invalid, HasSubstr("hue is a list")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nhue: -0.1"), StatusIs(invalid, HasSubstr("hue is '-0.1'")));
  EXPECT_THAT(MakeTransform("name: ColorJitter\nsaturaton: 0.1"),
              StatusIs(invalid, HasSubstr("did you mean 'saturation'?")));
}

}  // namespace
}  // namespace ssl
