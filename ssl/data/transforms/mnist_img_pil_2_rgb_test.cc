// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/mnist_img_pil_2_rgb.h"

#include <memory>
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

// OneImage(2, 3): values 1, 8, 15 and 22, 29, 36.
int PixelAfter(const std::string& parameters, int y, int x, int height, int width) {
  const std::unique_ptr<Transform> transform =
      MakeTransform(absl::StrCat("{name: MNISTImgPil2RGB", parameters, "}")).value();
  Sample sample = OneImage(2, 3, 1, 1);
  EXPECT_OK(ApplyTransform(*transform, &sample));
  const Image& image = sample.view(0).image;
  EXPECT_EQ(image.height(), height);
  EXPECT_EQ(image.width(), width);
  return image.row(y)[x];
}

TEST(MnistImgPil2Rgb, WithoutSize_KeepsTheImage) {
  EXPECT_EQ(PixelAfter("", 1, 2, 2, 3), 36);
  EXPECT_EQ(PixelAfter(", size: [], box: [0, 0]", 0, 1, 2, 3), 8);
}

TEST(MnistImgPil2Rgb, SizeIsWidthAndHeight_BoxIsXAndY) {
  const std::string parameters = ", size: [7, 5], box: [2, 1]";
  EXPECT_EQ(PixelAfter(parameters, 1, 2, 5, 7), 1);
  EXPECT_EQ(PixelAfter(parameters, 2, 4, 5, 7), 36);
  EXPECT_EQ(PixelAfter(parameters, 0, 0, 5, 7), 0) << "black around";
  EXPECT_EQ(PixelAfter(parameters, 2, 5, 5, 7), 0);
}

TEST(MnistImgPil2Rgb, OneNumber_IsASquare_AndTheRestIsCutOff) {
  EXPECT_EQ(PixelAfter(", size: 2, box: [-1, 0]", 1, 1, 2, 2), 36);
}

TEST(MnistImgPil2Rgb, WrongParameters_NameKeyAndValue) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: MNISTImgPil2RGB, box: [1]}"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.MNISTImgPil2RGB.box is [1], expected [x, y]")));
  EXPECT_THAT(MakeTransform("{name: MNISTImgPil2RGB, size: 0}"), StatusIs(invalid, HasSubstr("size is '0'")));
}

}  // namespace
}  // namespace ssl
