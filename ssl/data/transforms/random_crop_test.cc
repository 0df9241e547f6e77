// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_crop.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// An image in which byte i is i + 1, so that black comes from padding only.
Sample Numbered(int height, int width, int channels) {
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixels = sample.view(0).image.Allocate(height, width, channels);
  for (int i = 0; i < height * width * channels; ++i) pixels[i] = static_cast<uint8_t>(i + 1);
  return sample;
}

// The crop of `size` at (top, left) of the image after padding, pixel by pixel.
std::vector<uint8_t> NaiveCrop(const Image& image, int top, int left, int size) {
  std::vector<uint8_t> result;
  for (int y = top; y < top + size; ++y) {
    for (int x = left; x < left + size; ++x) {
      const bool inside = y >= 0 && y < image.height() && x >= 0 && x < image.width();
      for (int c = 0; c < image.channels(); ++c) {
        result.push_back(inside ? image.row(y)[x * image.channels() + c] : uint8_t{0});
      }
    }
  }
  return result;
}

// Every box of the side `size` that begins in [top, bottom] x [left, right], as the transform of `parameters` draws
// them.
void ExpectAllBoxes(const std::string& parameters, int size, int top, int bottom, int left, int right) {
  for (int channels : {1, 3}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                         MakeTransform(absl::StrCat("{name: RandomCrop, size: ", size, parameters, "}")));
    std::set<std::vector<uint8_t>> expected;
    const Sample original = Numbered(5, 6, channels);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) expected.insert(NaiveCrop(original.view(0).image, y, x, size));
    }
    std::set<std::vector<uint8_t>> seen;
    for (int index = 0; index < 2000; ++index) {
      Sample sample = original;
      ASSERT_OK(ApplyTransform(*transform, &sample, index));
      const Image& image = sample.view(0).image;
      seen.insert(std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes()));
    }
    EXPECT_EQ(seen, expected) << parameters;
  }
}

TEST(RandomCrop, WithoutPadding_LiesInTheImage) { ExpectAllBoxes("", 3, 0, 2, 0, 3); }

TEST(RandomCrop, WholeImage_IsTheOnlyBox) { ExpectAllBoxes(", padding: [0, 0, 0, 1]", 6, 0, 0, 0, 0); }

TEST(RandomCrop, Padding_IsOneTwoOrFourNumbers) {
  ExpectAllBoxes(", padding: 2", 4, -2, 3, -2, 4);
  ExpectAllBoxes(", padding: [1, 0]", 4, 0, 1, -1, 3);
  ExpectAllBoxes(", padding: [0, 1, 2, 3]", 4, -1, 4, 0, 4);
}

TEST(RandomCrop, PadIfNeeded_AddsWhatIsMissingOnBothSides) {
  ExpectAllBoxes(", pad_if_needed: true", 7, -2, 0, -1, 0);
  ExpectAllBoxes(", pad_if_needed: true", 3, 0, 2, 0, 3);
}

TEST(RandomCrop, FarPadding_GivesBlackCrops) { ExpectAllBoxes(", padding: [0, 9, 0, 0]", 2, -9, 3, 0, 4); }

TEST(RandomCrop, SmallImage_IsAnErrorWithTheSizes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: RandomCrop, size: [9, 4], padding: 1}"));
  Sample sample = Numbered(5, 6, 1);
  EXPECT_THAT(
      ApplyTransform(*transform, &sample),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr(
              "image with padding is 8 x 7, expected at least size, 4 x 9 (width x height); pad_if_needed: true")));
}

TEST(RandomCrop, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: RandomCrop}"), StatusIs(invalid, HasSubstr("RandomCrop.size is null")));
  EXPECT_THAT(MakeTransform("name: RandomCrop\nsize: 5\npadding: [1, 2, 3]"),
              StatusIs(invalid, HasSubstr("run.yaml:3: TRANSFORMS.RandomCrop.padding is a list, expected 1, 2 or 4")));
  EXPECT_THAT(MakeTransform("{name: RandomCrop, size: 5, padding: -1}"),
              StatusIs(invalid, HasSubstr("padding is '-1'")));
  EXPECT_THAT(MakeTransform("{name: RandomCrop, size: 5, padding_mode: reflect}"),
              StatusIs(invalid, HasSubstr("padding_mode")));
}

}  // namespace
}  // namespace ssl
