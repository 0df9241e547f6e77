// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_color_distortion.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

// How many of 2000 views become grey, and how many keep their pixels.
struct Counts {
  int grey = 0;
  int unchanged = 0;
};

Counts Count(const Transform& transform) {
  Counts counts;
  for (int index = 0; index < 2000; ++index) {
    Sample sample = OneImage(6, 6, 3, 40);
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    EXPECT_OK(ApplyTransform(transform, &sample, index));
    counts.grey += sample.view(0).image.channels() == 1;
    counts.unchanged += Pixels(sample.view(0).image) == before;
  }
  return counts;
}

// Five standard errors of a count of 2000.
double Bound(double probability) { return 5 * std::sqrt(2000 * probability * (1 - probability)); }

TEST(ImgPilColorDistortion, JittersInFourAndGreysInOneOfFive) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPilColorDistortion"));
  const Counts counts = Count(*transform);
  EXPECT_NEAR(counts.grey, 2000 * 0.2, Bound(0.2));
  EXPECT_NEAR(counts.unchanged, 2000 * 0.2 * 0.8, Bound(0.16));
}

TEST(ImgPilColorDistortion, StrengthZero_OnlyGreys) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilColorDistortion, strength: 0}"));
  const Counts counts = Count(*transform);
  EXPECT_EQ(counts.grey + counts.unchanged, 2000);
}

TEST(ImgPilRandomColorJitter, JittersWithItsProbabilityAndNeverGreys) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> usual, MakeTransform("name: ImgPilRandomColorJitter"));
  EXPECT_EQ(Count(*usual).grey, 0);
  EXPECT_NEAR(Count(*usual).unchanged, 2000 * 0.2, Bound(0.2));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> rare,
                       MakeTransform("{name: ImgPilRandomColorJitter, strength: 0.5, p: 0.1}"));
  EXPECT_NEAR(Count(*rare).unchanged, 2000 * 0.9, Bound(0.9));
}

TEST(ImgPilRandomColorJitter, Strength_BoundsTheFactors) {
  // A grey image of one value: contrast changes nothing, brightness by 0.8 * 0.25.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilRandomColorJitter, strength: 0.25, p: 1}"));
  for (int index = 0; index < 200; ++index) {
    Sample sample;
    sample.ResetViews(1);
    *sample.view(0).image.Allocate(1, 1, 1) = 100;
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    EXPECT_GE(sample.view(0).image.pixels()[0], 80);
    EXPECT_LE(sample.view(0).image.pixels()[0], 120);
  }
}

TEST(ImgPilColorDistortion, GreyImages_StayOfOneChannel) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPilColorDistortion"));
  for (int index = 0; index < 50; ++index) {
    Sample sample = OneImage(4, 4, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    EXPECT_EQ(sample.view(0).image.channels(), 1);
  }
}

TEST(ImgPilColorDistortion, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ImgPilColorDistortion\nstrength: 3"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ImgPilColorDistortion.strength is '3'")));
  EXPECT_THAT(MakeTransform("{name: ImgPilColorDistortion, strenght: 1}"),
              StatusIs(invalid, HasSubstr("did you mean 'strength'?")));
  EXPECT_THAT(MakeTransform("{name: ImgPilRandomColorJitter, p: -1}"),
              StatusIs(invalid, HasSubstr("TRANSFORMS.ImgPilRandomColorJitter.p is '-1'")));
}

TEST(ImgPilColorDistortion, AfterToTensor_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> to_tensor, MakeTransform("name: ToTensor"));
  Sample sample = OneImage(4, 4, 3);
  ASSERT_OK(ApplyTransform(*to_tensor, &sample));
  for (const char* name :
       {"ImgPilColorDistortion", "ImgPilRandomColorJitter", "ColorJitter", "Grayscale", "RandomGrayscale",
        "ImgPilGaussianBlur", "ImgPilRandomSolarize", "ImgPilRandomPhotometric", "RandomVerticalFlip"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(std::string("name: ") + name));
    EXPECT_EQ(transform->name(), name);
    EXPECT_THAT(ApplyTransform(*transform, &sample),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stands after ToTensor")))
        << name;
  }
}

}  // namespace
}  // namespace ssl
