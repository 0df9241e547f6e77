// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_resize_larger_side.h"

#include <memory>

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

TEST(ImgPilResizeLargerSideGolden, EqualsPillowsInEveryPixel) {
  const golden::CaseRunner runner = [](const golden::Case& golden_case) {
    const std::unique_ptr<Transform> transform =
        MakeTransform(absl::StrCat("{name: ImgPilResizeLargerSide, size: ", golden_case.IntIn("side", 1, 100), "}"))
            .value();
    Sample sample;
    sample.ResetViews(1);
    sample.view(0).image = ToImage(golden_case.steps[0].Input("image"));
    ASSERT_OK(ApplyTransform(*transform, &sample));
    EXPECT_EQ(LargestDifference(sample.view(0).image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  };
  RunGolden("augment", "resize_larger_side", runner, nullptr, kAugmentFolder);
}

TEST(ImgPilResizeLargerSide, SizesAreRoundedHalfToEven) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPilResizeLargerSide, size: 10}"));
  const int cases[][4] = {{20, 5, 10, 2}, {20, 7, 10, 4}, {9, 20, 4, 10}, {1, 100, 1, 10}, {10, 10, 10, 10}};
  for (const auto& [height, width, new_height, new_width] : cases) {
    Sample sample = OneImage(height, width, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample));
    EXPECT_EQ(sample.view(0).image.height(), new_height) << height << " x " << width;
    EXPECT_EQ(sample.view(0).image.width(), new_width) << height << " x " << width;
  }
}

TEST(ImgPilResizeLargerSide, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(MakeTransform("{name: ImgPilResizeLargerSide, size: 0}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:1: TRANSFORMS.ImgPilResizeLargerSide.size is '0'")));
}

}  // namespace
}  // namespace ssl
