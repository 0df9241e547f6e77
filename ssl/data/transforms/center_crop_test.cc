// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/center_crop.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(CenterCropGolden, EqualsTorchvisionsInEveryPixel) {
  RunGolden("image", "center_crop", [&](const golden::Case& golden_case) {
    const Extent size = SizeOf(golden_case);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Transform> transform,
        MakeTransform(absl::StrCat("{name: CenterCrop, size: [", size.height, ", ", size.width, "]}")));
    Sample sample;
    sample.ResetViews(1);
    sample.view(0).image = ToImage(golden_case.steps[0].Input("image"));

    ASSERT_OK(ApplyTransform(*transform, &sample));

    EXPECT_EQ(LargestDifference(sample.view(0).image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  });
}

TEST(CenterCrop, HalfPixels_AreRoundedToEven) {
  EXPECT_EQ(CenterBox(9, 7, {4, 4}).top, 2);   // 2.5
  EXPECT_EQ(CenterBox(9, 7, {4, 4}).left, 2);  // 1.5
  EXPECT_EQ(CenterBox(4, 5, {9, 9}).top, -2);
  EXPECT_EQ(CenterBox(4, 5, {9, 9}).left, -2);
}

TEST(CenterCrop, FlippedImage_IsCutAsItWillBeSeen) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: CenterCrop, size: [1, 2]}"));
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixels = sample.view(0).image.Allocate(1, 5, 1);
  for (int x = 0; x < 5; ++x) pixels[x] = static_cast<uint8_t>(x);
  sample.view(0).flipped = true;

  ASSERT_OK(ApplyTransform(*transform, &sample));

  EXPECT_FALSE(sample.view(0).flipped);
  EXPECT_EQ(sample.view(0).image.pixels()[0], 2);  // of 4 3 2 1 0, from the third on
  EXPECT_EQ(sample.view(0).image.pixels()[1], 1);
}

TEST(CenterCrop, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: CenterCrop\nsize: big"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.CenterCrop.size is 'big', expected one or two "
                                          "numbers of pixels, from 1 to 65535")));
  EXPECT_THAT(MakeTransform("{name: CenterCrop}"), StatusIs(invalid, HasSubstr("size is null")));
  EXPECT_THAT(MakeTransform("{name: CenterCrop, size: []}"), StatusIs(invalid, HasSubstr("size is a list")));
}

}  // namespace
}  // namespace ssl
