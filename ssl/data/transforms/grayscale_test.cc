// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/grayscale.h"

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

int CountGrey(const Transform& transform) {
  int grey = 0;
  for (int index = 0; index < 2000; ++index) {
    Sample sample = OneImage(2, 2, 3);
    EXPECT_OK(ApplyTransform(transform, &sample, index));
    grey += sample.view(0).image.channels() == 1;
  }
  return grey;
}

TEST(Grayscale, EveryView_BecomesGrey) {
  for (const char* entry : {"name: Grayscale", "{name: Grayscale, num_output_channels: 3}"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(entry));
    Sample sample;
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(1, 2, 3);
    pixels[0] = 100, pixels[1] = 50, pixels[2] = 200;
    pixels[3] = pixels[4] = pixels[5] = 77;
    ASSERT_OK(ApplyTransform(*transform, &sample));
    const Image& grey = sample.view(0).image;
    ASSERT_EQ(grey.size_bytes(), 2);
    EXPECT_EQ(grey.pixels()[0], 82);  // 29.9 + 29.35 + 22.8
    EXPECT_EQ(grey.pixels()[1], 77);
  }
}

TEST(RandomGrayscale, Probability_IsObeyed) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> usual, MakeTransform("name: RandomGrayscale"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> half, MakeTransform("{name: RandomGrayscale, p: 0.5}"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: RandomGrayscale, p: 1}"));
  EXPECT_NEAR(CountGrey(*usual), 200, 5 * std::sqrt(2000 * 0.09));
  EXPECT_NEAR(CountGrey(*half), 1000, 5 * std::sqrt(2000 * 0.25));
  EXPECT_EQ(CountGrey(*always), 2000);
}

TEST(Grayscale, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(
      MakeTransform("name: Grayscale\nnum_output_channels: 2"),
      StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.Grayscale.num_output_channels is 2, expected 1 or 3")));
  EXPECT_THAT(MakeTransform("{name: RandomGrayscale, p: 2}"), StatusIs(invalid, HasSubstr("RandomGrayscale.p is '2'")));
}

}  // namespace
}  // namespace ssl
