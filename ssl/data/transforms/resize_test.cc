// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/resize.h"

#include <cstdint>
#include <memory>
#include <string>
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

std::string InterpolationLimit(const golden::Case& golden_case) {
  const std::string& name = golden_case.Text("interpolation");
  return name == "bicubic" || name == "bilinear" ? "" : "no interpolation " + name;
}

void CheckGolden(const golden::Case& golden_case, const std::string& size) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform(absl::StrCat("{name: Resize, size: ", size,
                                                  ", interpolation: ", golden_case.Text("interpolation"), "}")));
  Sample sample;
  sample.ResetViews(1);
  sample.view(0).image = ToImage(golden_case.steps[0].Input("image"));

  ASSERT_OK(ApplyTransform(*transform, &sample));

  EXPECT_EQ(LargestDifference(sample.view(0).image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
}

TEST(ResizeGolden, ShorterSideEqualsTorchvisionsInEveryPixel) {
  RunGolden(
      "image", "resize_shorter_side",
      [&](const golden::Case& golden_case) {
        CheckGolden(golden_case, absl::StrCat(golden_case.IntIn("size", 1, 1000)));
        CheckGolden(golden_case, absl::StrCat("[", golden_case.IntIn("size", 1, 1000), "]"));
      },
      &InterpolationLimit);
}

TEST(ResizeGolden, HeightAndWidthEqualTorchvisionsInEveryPixel) {
  RunGolden(
      "image", "resize",
      [&](const golden::Case& golden_case) {
        const Extent size = SizeOf(golden_case);
        CheckGolden(golden_case, absl::StrCat("[", size.height, ", ", size.width, "]"));
      },
      &InterpolationLimit);
}

TEST(Resize, LongerSide_IsRoundedDown) {
  EXPECT_EQ(SizeForShorterSide(100, 149, 50).height, 50);
  EXPECT_EQ(SizeForShorterSide(100, 149, 50).width, 74);
  EXPECT_EQ(SizeForShorterSide(149, 100, 50).height, 74);
  EXPECT_EQ(SizeForShorterSide(149, 100, 50).width, 50);
  EXPECT_EQ(SizeForShorterSide(7, 7, 3).height, 3);
  EXPECT_EQ(SizeForShorterSide(7, 7, 3).width, 3);
}

TEST(Resize, FlippedImage_IsScaledAsItWillBeSeen) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: Resize, size: [3, 4]}"));
  Sample noted = OneImage(5, 7, 1);
  Sample done = OneImage(5, 7, 1);
  noted.view(0).flipped = true;
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) done.view(0).image.MutablePixels()[y * 7 + x] = noted.view(0).image.row(y)[6 - x];
  }

  ASSERT_OK(ApplyTransform(*transform, &noted));
  ASSERT_OK(ApplyTransform(*transform, &done));

  EXPECT_FALSE(noted.view(0).flipped);
  EXPECT_EQ(LargestDifference(noted.view(0).image, done.view(0).image), 0);
}

TEST(Resize, SameSize_KeepsTheImage) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: Resize, size: 5}"));
  Sample sample = OneImage(5, 9, 3);
  const Image before = sample.view(0).image;
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(LargestDifference(sample.view(0).image, before), 0);
}

TEST(Resize, Interpolation_IsANameOrPillowsNumber) {
  std::vector<Image> results;
  for (const char* interpolation : {"bilinear", "2", "bicubic", "3"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                         MakeTransform(absl::StrCat("{name: Resize, size: 8, interpolation: ", interpolation, "}")));
    Sample sample = OneImage(5, 5, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample));
    results.push_back(sample.view(0).image);
  }
  EXPECT_EQ(LargestDifference(results[0], results[1]), 0);
  EXPECT_EQ(LargestDifference(results[2], results[3]), 0);
  EXPECT_GT(LargestDifference(results[0], results[2]), 0);
}

TEST(Resize, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: Resize\nsize: [1, 2, 3]"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.Resize.size is a list, expected one or two")));
  EXPECT_THAT(MakeTransform("{name: Resize, size: 5, interpolation: nearest}"),
              StatusIs(invalid, HasSubstr("Resize.interpolation is 'nearest', expected 'bilinear' (or 2)")));
  EXPECT_THAT(MakeTransform("{name: Resize, size: 5, max_size: 7}"), StatusIs(invalid, HasSubstr("max_size")));
}

}  // namespace
}  // namespace ssl
