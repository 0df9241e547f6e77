// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_to_multi_crop.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kRecipe[] = R"(
name: ImgPilToMultiCrop
total_num_crops: 6
num_crops: [2, 4]
size_crops: [28, 16]
crop_scales: [[0.3, 1.0], [0.05, 0.3]]
)";

// The recipe with the line of `key` replaced.
std::string RecipeWith(const std::string& key, const std::string& value) {
  std::string text = kRecipe;
  const size_t start = text.find(key + ":");
  const size_t end = text.find('\n', start);
  return text.replace(start, end - start, value.empty() ? "" : key + ": " + value);
}

TEST(ImgPilToMultiCrop, Views_HaveTheSizesInTheOrderOfTheKinds) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(kRecipe));
  Sample sample = OneImage(28, 28, 1);

  ASSERT_OK(ApplyTransform(*transform, &sample));

  std::vector<int> sides;
  for (int v = 0; v < sample.num_views(); ++v) {
    EXPECT_EQ(sample.view(v).image.height(), sample.view(v).image.width());
    sides.push_back(sample.view(v).image.width());
  }
  EXPECT_EQ(sides, (std::vector<int>{28, 28, 16, 16, 16, 16}));
}

std::string ListText(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

TEST(ImgPilToMultiCropGolden, SizesComeInVisslsOrder) {
  RunGolden("crop_boxes", "multicrop_sizes", [&](const golden::Case& golden_case) {
    std::vector<std::string> scales;
    for (const ConfigNode& scale : golden_case.Param("crop_scales").items()) {
      scales.push_back(absl::StrCat("[", absl::StrJoin(golden::ToDoubles(scale), ", "), "]"));
    }
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Transform> transform,
        MakeTransform(absl::StrCat("{name: ImgPilToMultiCrop, total_num_crops: ", golden_case.Int("total_num_crops"),
                                   ", num_crops: ", ListText(golden_case.Ints("num_crops")),
                                   ", size_crops: ", ListText(golden_case.Ints("size_crops")), ", crop_scales: [",
                                   absl::StrJoin(scales, ", "), "]}")));
    Sample sample = OneImage(250, 300, 3);

    ASSERT_OK(ApplyTransform(*transform, &sample));

    const ConfigNode& sizes = golden_case.steps[0].Expected("sizes").value;
    ASSERT_EQ(static_cast<size_t>(sample.num_views()), sizes.items().size());
    for (int v = 0; v < sample.num_views(); ++v) {
      const Image& image = sample.view(v).image;
      EXPECT_EQ(golden::ToInts(sizes.items()[v]), (std::vector<int64_t>{image.width(), image.height()})) << v;
    }
  });
}

TEST(ImgPilToMultiCrop, Views_DifferFromEachOther) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(kRecipe));
  Sample sample = OneImage(28, 28, 1);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  for (int v : {1, 3, 4, 5}) {
    const Image& left = sample.view(v - 1).image;
    const Image& right = sample.view(v).image;
    if (left.size_bytes() != right.size_bytes()) continue;
    EXPECT_NE(std::vector<uint8_t>(left.pixels(), left.pixels() + left.size_bytes()),
              std::vector<uint8_t>(right.pixels(), right.pixels() + right.size_bytes()));
  }
}

TEST(ImgPilToMultiCrop, CropRatios_ShapeTheBoxes) {
  // Whole height, a quarter of the width: an image of vertical bands keeps its rows equal and one band wide.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(R"(
name: ImgPilToMultiCrop
total_num_crops: 1
num_crops: [1]
size_crops: [4]
crop_scales: [[0.25, 0.25]]
crop_ratios: [[0.25, 0.25]]
)"));
  for (int index = 0; index < 10; ++index) {
    Sample sample;
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(16, 16, 1);
    for (int i = 0; i < 256; ++i) pixels[i] = static_cast<uint8_t>(i / 16);  // the row

    ASSERT_OK(ApplyTransform(*transform, &sample, index));

    // 16 rows become 4: the means of rows 0-3, 4-7, ... weighted by a triangle.
    EXPECT_LT(sample.view(0).image.row(0)[0], 4);
    EXPECT_GT(sample.view(0).image.row(3)[0], 11);
  }
}

TEST(ImgPilToMultiCrop, Contradictions_NameKeyPlaceAndNumbers) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(
      MakeTransform(RecipeWith("total_num_crops", "8")),
      StatusIs(invalid, HasSubstr("run.yaml:3: TRANSFORMS.ImgPilToMultiCrop.total_num_crops is 8, expected 6")));
  EXPECT_THAT(MakeTransform(RecipeWith("size_crops", "[28]")),
              StatusIs(invalid, HasSubstr("size_crops has 1 entries, expected 2")));
  EXPECT_THAT(
      MakeTransform(RecipeWith("crop_scales", "[[0.3, 1.0]]")),
      StatusIs(invalid, HasSubstr("run.yaml:6: TRANSFORMS.ImgPilToMultiCrop.crop_scales is a list, expected 2")));
  EXPECT_THAT(MakeTransform(RecipeWith("crop_scales", "")), StatusIs(invalid, HasSubstr("crop_scales is missing")));
  EXPECT_THAT(MakeTransform(RecipeWith("crop_scales", "[[0.3, 1.0], [0.3]]")),
              StatusIs(invalid, HasSubstr("crop_scales is [0.3], expected two increasing numbers")));
  EXPECT_THAT(MakeTransform(RecipeWith("crop_scales", "[[0.3, 1.0], [a, b]]")), StatusIs(invalid, HasSubstr("'a'")));
  EXPECT_THAT(MakeTransform(std::string(kRecipe) + "crop_scale: 1\n"),
              StatusIs(invalid, AllOf(HasSubstr("crop_scale"), HasSubstr("did you mean 'crop_scales'?"))));
}

TEST(ImgPilToMultiCrop, SecondMultiCrop_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(kRecipe));
  Sample sample = OneImage(28, 28, 1);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_THAT(ApplyTransform(*transform, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("crops of one image, but gets 6")));
}

}  // namespace
}  // namespace ssl
