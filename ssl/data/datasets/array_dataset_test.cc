// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/array_dataset.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Two grey images of 2 x 3 pixels with values 0 ... 11.
ImageArray TwoImages() {
  ImageArray array;
  array.count = 2;
  array.height = 2;
  array.width = 3;
  for (uint8_t i = 0; i < 12; ++i) array.pixels.push_back(i);
  return array;
}

TEST(ArrayDataset, Get_LendsTheSamePixelsEveryTime) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ArrayDataset> dataset, ArrayDataset::Create(TwoImages(), "two"));
  Sample first;
  Sample second;
  first.ResetViews(1);
  second.ResetViews(1);

  ASSERT_OK(dataset->Get(1, &first));
  ASSERT_OK(dataset->Get(1, &second));

  EXPECT_EQ(first.view(0).image.pixels(), second.view(0).image.pixels());
  EXPECT_EQ(first.view(0).image.height(), 2);
  EXPECT_EQ(first.view(0).image.width(), 3);
  EXPECT_EQ(first.view(0).image.row(1)[2], 11);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_FALSE(dataset->has_labels());
}

TEST(ArrayDataset, WritingToALentImage_LeavesTheDataSetAlone) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ArrayDataset> dataset, ArrayDataset::Create(TwoImages(), "two"));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(0, &sample));

  sample.view(0).image.MutablePixels()[5] = 99;

  EXPECT_EQ(sample.view(0).image.pixels()[5], 99);
  ASSERT_OK(dataset->Get(0, &sample));
  EXPECT_EQ(sample.view(0).image.pixels()[5], 5);
}

TEST(ArrayDataset, Labels_ComeWithTheImages) {
  ImageArray array = TwoImages();
  array.labels = {4, 5};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ArrayDataset> dataset, ArrayDataset::Create(std::move(array), "two"));
  Sample sample;
  sample.ResetViews(1);

  ASSERT_OK(dataset->Get(1, &sample));

  EXPECT_TRUE(dataset->has_labels());
  EXPECT_EQ(sample.label, 5);
}

TEST(ArrayDataset, Contradictions_AreRefusedWithBothNumbers) {
  ImageArray pixels = TwoImages();
  pixels.pixels.pop_back();
  EXPECT_THAT(ArrayDataset::Create(std::move(pixels), "two"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two: holds 11 bytes of pixels, expected 12")));

  ImageArray labels = TwoImages();
  labels.labels = {1, 2, 3};
  EXPECT_THAT(ArrayDataset::Create(std::move(labels), "two"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 labels for 2 images")));

  ImageArray channels = TwoImages();
  channels.channels = 2;
  EXPECT_THAT(ArrayDataset::Create(std::move(channels), "two"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 channels, expected 1 or 3")));

  EXPECT_THAT(ArrayDataset::Create(ImageArray(), "none"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("none: holds 0 images")));
}

}  // namespace
}  // namespace ssl
