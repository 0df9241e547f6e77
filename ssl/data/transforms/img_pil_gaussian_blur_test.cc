// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/gaussian_blur.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

TEST(ImgPilGaussianBlur, FixedRadius_IsThatBlur) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilGaussianBlur, p: 1, radius_min: 1.3, radius_max: 1.3}"));
  for (int channels : {1, 3}) {
    Sample sample = OneImage(9, 11, channels);
    Image expected = sample.view(0).image;
    BlurBuffers buffers;
    GaussianBlur(1.3f, &buffers, &expected);
    ASSERT_OK(ApplyTransform(*transform, &sample));
    EXPECT_EQ(Pixels(sample.view(0).image), Pixels(expected));
  }
}

TEST(ImgPilGaussianBlur, Default_BlursHalfOfTheViews) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilGaussianBlur, radius_min: 1}"));
  int blurred = 0;
  for (int index = 0; index < 2000; ++index) {
    Sample sample = OneImage(4, 4, 1);
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    blurred += Pixels(sample.view(0).image) != before;
  }
  EXPECT_NEAR(blurred, 1000, 5 * std::sqrt(2000 * 0.25));
}

TEST(ImgPilGaussianBlur, Radius_IsDrawnFromTheWholeInterval) {
  // The peak of a blurred point falls with the radius.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilGaussianBlur, p: 1, radius_min: 0.5, radius_max: 1.5}"));
  const auto peak_of = [](float radius) {
    Image image;
    uint8_t* pixels = image.Allocate(1, 15, 1);
    for (int x = 0; x < 15; ++x) pixels[x] = x == 7 ? 255 : 0;
    BlurBuffers buffers;
    GaussianBlur(radius, &buffers, &image);
    return image.pixels()[7];
  };
  int lowest = 255;
  int highest = 0;
  for (int index = 0; index < 300; ++index) {
    Sample sample;
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(1, 15, 1);
    for (int x = 0; x < 15; ++x) pixels[x] = x == 7 ? 255 : 0;
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    lowest = std::min<int>(lowest, sample.view(0).image.pixels()[7]);
    highest = std::max<int>(highest, sample.view(0).image.pixels()[7]);
  }
  EXPECT_GE(lowest, peak_of(1.5f));
  EXPECT_LE(lowest, peak_of(1.5f) + 3);
  EXPECT_LE(highest, peak_of(0.5f));
  EXPECT_GE(highest, peak_of(0.5f) - 5);
}

TEST(ImgPilGaussianBlur, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ImgPilGaussianBlur\nradius_min: 3"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ImgPilGaussianBlur.radius_min is 3, expected at most "
                                          "2 as radius_max")));
  EXPECT_THAT(MakeTransform("{name: ImgPilGaussianBlur, radius_min: -1}"),
              StatusIs(invalid, HasSubstr("radius_min is '-1'")));
  EXPECT_THAT(MakeTransform("{name: ImgPilGaussianBlur, p: 1.1}"), StatusIs(invalid, HasSubstr("p is '1.1'")));
  EXPECT_THAT(MakeTransform("{name: ImgPilGaussianBlur, radius: 1}"), StatusIs(invalid, HasSubstr("radius")));
}

}  // namespace
}  // namespace ssl
