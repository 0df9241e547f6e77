// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_vertical_flip.h"

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

TEST(RandomVerticalFlip, Rows_ChangePlacesAsTheyAre) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: RandomVerticalFlip, p: 1}"));
  for (int channels : {1, 3}) {
    for (int height : {1, 2, 5}) {
      const Sample original = OneImage(height, 4, channels);
      Sample sample = original;
      sample.view(0).flipped = true;
      ASSERT_OK(ApplyTransform(*always, &sample));
      EXPECT_TRUE(sample.view(0).flipped);
      for (int y = 0; y < height; ++y) {
        for (int i = 0; i < 4 * channels; ++i) {
          ASSERT_EQ(sample.view(0).image.row(y)[i], original.view(0).image.row(height - 1 - y)[i]);
        }
      }
    }
  }
}

TEST(RandomVerticalFlip, Default_FlipsHalfOfTheViews) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: RandomVerticalFlip"));
  int flips = 0;
  for (int index = 0; index < 2000; ++index) {
    Sample sample = OneImage(2, 1, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    flips += sample.view(0).image.pixels()[0] == 7;
  }
  EXPECT_NEAR(flips, 1000, 5 * std::sqrt(2000 * 0.25));
}

TEST(RandomVerticalFlip, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(
      MakeTransform("{name: RandomVerticalFlip, p: 1.5}"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.yaml:1: TRANSFORMS.RandomVerticalFlip.p is '1.5'")));
}

}  // namespace
}  // namespace ssl
