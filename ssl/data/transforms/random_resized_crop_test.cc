// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_resized_crop.h"

#include <memory>
#include <set>
#include <string>

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

std::string Pixels(const View& view) {
  return std::string(reinterpret_cast<const char*>(view.image.pixels()), view.image.size_bytes());
}

TEST(RandomResizedCrop, Size_IsANumberOrHeightAndWidth) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> square, MakeTransform("{name: RandomResizedCrop, size: 5}"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> oblong,
                       MakeTransform("{name: RandomResizedCrop, size: [4, 6]}"));
  Sample sample = OneImage(9, 9, 3);

  ASSERT_OK(ApplyTransform(*square, &sample));
  EXPECT_EQ(sample.view(0).image.height(), 5);
  EXPECT_EQ(sample.view(0).image.width(), 5);
  EXPECT_EQ(sample.view(0).image.channels(), 3);
  ASSERT_OK(ApplyTransform(*oblong, &sample));
  EXPECT_EQ(sample.view(0).image.height(), 4);
  EXPECT_EQ(sample.view(0).image.width(), 6);
}

TEST(RandomResizedCrop, WholeImage_KeepsItsPixels) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: RandomResizedCrop, size: 6, scale: [1, 1], ratio: [1, 1]}"));
  Sample sample = OneImage(6, 6, 1);
  const std::string before = Pixels(sample.view(0));

  ASSERT_OK(ApplyTransform(*transform, &sample));

  EXPECT_EQ(Pixels(sample.view(0)), before);
}

TEST(RandomResizedCrop, OtherSample_IsAnotherCrop) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: RandomResizedCrop, size: 8}"));
  std::set<std::string> crops;
  for (int index = 0; index < 20; ++index) {
    Sample sample = OneImage(28, 28, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    crops.insert(Pixels(sample.view(0)));
  }
  EXPECT_GT(crops.size(), 15u);
}

TEST(RandomResizedCrop, FlippedImage_IsCutAsItWillBeSeen) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: RandomResizedCrop, size: 4}"));
  Sample noted = OneImage(9, 9, 1);
  Sample done = OneImage(9, 9, 1);
  noted.view(0).flipped = true;
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 9; ++x) done.view(0).image.MutablePixels()[y * 9 + x] = noted.view(0).image.row(y)[8 - x];
  }

  ASSERT_OK(ApplyTransform(*transform, &noted));
  ASSERT_OK(ApplyTransform(*transform, &done));

  EXPECT_FALSE(noted.view(0).flipped);
  EXPECT_EQ(Pixels(noted.view(0)), Pixels(done.view(0)));
}

TEST(RandomResizedCrop, Interpolation_IsUsed) {
  std::set<std::string> crops;
  for (const char* interpolation : {"bilinear", "bicubic"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                         MakeTransform(absl::StrCat("{name: RandomResizedCrop, size: 8, interpolation: ", interpolation,
                                                    ", scale: [1, 1], ratio: [1, 1]}")));
    Sample sample = OneImage(5, 5, 3);
    ASSERT_OK(ApplyTransform(*transform, &sample));
    crops.insert(Pixels(sample.view(0)));
  }
  EXPECT_EQ(crops.size(), 2u);
}

TEST(RandomResizedCrop, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: RandomResizedCrop\nsize: big"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.RandomResizedCrop.size is 'big'")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop}"), StatusIs(invalid, HasSubstr("size is null")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop, size: [1, 2, 3]}"),
              StatusIs(invalid, HasSubstr("size is a list")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop, size: 0}"), StatusIs(invalid, HasSubstr("size is '0'")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop, size: 5, scale: [0.5, 0.2]}"),
              StatusIs(invalid, HasSubstr("scale is [0.5, 0.2], expected two increasing numbers above 0")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop, size: 5, scale: [0.5, 2]}"),
              StatusIs(invalid, HasSubstr("at most 1")));
  EXPECT_THAT(MakeTransform("{name: RandomResizedCrop, size: 5, ratio: [0, 1]}"),
              StatusIs(invalid, HasSubstr("ratio is [0, 1]")));
}

TEST(RandomResizedCrop, AfterToTensor_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> to_tensor, MakeTransform("{name: ToTensor}"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> crop, MakeTransform("{name: RandomResizedCrop, size: 5}"));
  Sample sample = OneImage(9, 9, 1);
  ASSERT_OK(ApplyTransform(*to_tensor, &sample));
  EXPECT_THAT(ApplyTransform(*crop, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stands after ToTensor")));
}

}  // namespace
}  // namespace ssl
