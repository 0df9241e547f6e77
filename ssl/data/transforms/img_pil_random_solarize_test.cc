// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_random_solarize.h"

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

// How many of 4000 images of one value become its inverse.
int CountInverted(const Transform& transform, int value) {
  int inverted = 0;
  for (int index = 0; index < 4000; ++index) {
    Sample sample;
    sample.ResetViews(1);
    *sample.view(0).image.Allocate(1, 1, 1) = static_cast<uint8_t>(value);
    EXPECT_OK(ApplyTransform(transform, &sample, index));
    const int result = sample.view(0).image.pixels()[0];
    EXPECT_TRUE(result == value || result == 255 - value) << result;
    inverted += result == 255 - value;
  }
  return inverted;
}

TEST(ImgPilRandomSolarize, ThresholdIsUniform) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: ImgPilRandomSolarize, p: 1}"));
  for (int value : {0, 63, 200, 255}) {
    const double probability = (value + 1) / 257.0;  // of a threshold in 0 ... value, of 0 ... 256
    EXPECT_NEAR(CountInverted(*always, value), 4000 * probability,
                5 * std::sqrt(4000 * probability * (1 - probability)) + 1)
        << value;
  }
}

TEST(ImgPilRandomSolarize, Probability_IsTwoThirdsOrAsGiven) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> usual, MakeTransform("name: ImgPilRandomSolarize"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> never, MakeTransform("{name: ImgPilRandomSolarize, p: 0}"));
  const double probability = 0.66 * 256 / 257;
  EXPECT_NEAR(CountInverted(*usual, 255), 4000 * probability, 5 * std::sqrt(4000 * probability * (1 - probability)));
  EXPECT_EQ(CountInverted(*never, 255), 0);
}

TEST(ImgPilRandomSolarize, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(
      MakeTransform("{name: ImgPilRandomSolarize, p: 7}"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.yaml:1: TRANSFORMS.ImgPilRandomSolarize.p is '7'")));
  EXPECT_THAT(MakeTransform("{name: ImgPilRandomSolarize, prob: 0.2}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prob")));
}

}  // namespace
}  // namespace ssl
