// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_to_patches_and_image.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr char kWhole[] =
    "{name: ImgPilToPatchesAndImage, crop_size_image: 20, crop_size_patches: 99, crop_scale_image: [1, 1], "
    "crop_scale_patches: [1, 1]";

// A grey square of 9 cells of 33 pixels; a pixel has the number of its cell, counted down the columns.
Sample Cells() {
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixels = sample.view(0).image.Allocate(99, 99, 1);
  for (int y = 0; y < 99; ++y) {
    for (int x = 0; x < 99; ++x) *pixels++ = static_cast<uint8_t>(x / 33 * 3 + y / 33);
  }
  return sample;
}

// The cells that the patches come from, in order: "012345678".
std::string CellsOf(const Sample& sample) {
  std::string cells;
  for (int v = 1; v < sample.num_views(); ++v) {
    const Image& patch = sample.view(v).image;
    EXPECT_EQ(patch.height(), 12);
    EXPECT_EQ(patch.width(), 12);
    for (int64_t i = 0; i < patch.size_bytes(); ++i) EXPECT_EQ(patch.pixels()[i], patch.pixels()[0]);
    cells += static_cast<char>('0' + patch.pixels()[0]);
  }
  return cells;
}

TEST(ImgPilToPatchesAndImage, ImageFirst_ThenEveryPatchOnce) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(std::string(kWhole) + "}"));
  std::set<std::string> orders;
  for (int i = 0; i < 200; ++i) {
    Sample sample = Cells();
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    ASSERT_EQ(sample.num_views(), 10);
    EXPECT_EQ(sample.view(0).image.height(), 20);
    EXPECT_EQ(sample.view(0).image.width(), 20);
    const std::string cells = CellsOf(sample);
    EXPECT_EQ(std::set<char>(cells.begin(), cells.end()).size(), 9u) << cells;
    orders.insert(cells);
  }
  EXPECT_GT(orders.size(), 195u);
}

TEST(ImgPilToPatchesAndImage, WithoutPermutation_PatchesComeDownTheColumns) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform(std::string(kWhole) + ", permute_patches: false}"));
  Sample sample = Cells();
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(CellsOf(sample), "012345678");
}

TEST(ImgPilToPatchesAndImage, UsualSizes_AreThoseOfThePaper) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPilToPatchesAndImage"));
  Sample sample = OneImage(120, 150, 3);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  ASSERT_EQ(sample.num_views(), 10);
  EXPECT_EQ(sample.view(0).image.height(), 224);
  EXPECT_EQ(sample.view(9).image.height(), 64);
}

TEST(ImgPilToPatchesAndImage, WrongUse_NamesTheReason) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: ImgPilToPatchesAndImage, num_patches: 5}"),
              StatusIs(invalid, HasSubstr("num_patches is 5, expected a square number")));
  EXPECT_THAT(MakeTransform("{name: ImgPilToPatchesAndImage, crop_size_patches: 65}"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.ImgPilToPatchesAndImage.crop_size_patches is 65, "
                                          "expected at least 66")));
  EXPECT_THAT(MakeTransform("{name: ImgPilToPatchesAndImage, crop_scale_image: [0.5]}"),
              StatusIs(invalid, HasSubstr("crop_scale_image is [0.5]")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPilToPatchesAndImage"));
  Sample two;
  two.ResetViews(2);
  EXPECT_THAT(ApplyTransform(*transform, &two), StatusIs(invalid, HasSubstr("patches of one image, but gets 2")));
}

}  // namespace
}  // namespace ssl
