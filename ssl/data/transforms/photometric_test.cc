// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/photometric.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

void CheckGolden(const std::string& op, const std::function<void(const golden::Case&, Image*)>& change) {
  RunGolden("image", op, [&](const golden::Case& golden_case) {
    Image image = ToImage(golden_case.steps[0].Input("image"));

    change(golden_case, &image);

    EXPECT_EQ(LargestDifference(image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  });
}

TEST(PhotometricGolden, SolarizeEqualsPillowsInEveryPixel) {
  CheckGolden("solarize", [](const golden::Case& golden_case, Image* image) {
    Solarize(static_cast<int>(golden_case.IntIn("threshold", 0, 256)), image);
  });
}

TEST(PhotometricGolden, PosterizeEqualsPillowsInEveryPixel) {
  CheckGolden("posterize", [](const golden::Case& golden_case, Image* image) {
    Posterize(static_cast<int>(golden_case.IntIn("bits", 1, 8)), image);
  });
}

TEST(PhotometricGolden, AutoContrastEqualsPillowsInEveryPixel) {
  CheckGolden("autocontrast", [](const golden::Case& golden_case, Image* image) { AutoContrast(image); });
}

TEST(PhotometricGolden, SharpnessEqualsPillowsInEveryPixel) {
  CheckGolden("sharpness", [](const golden::Case& golden_case, Image* image) {
    Image scratch;
    AdjustSharpness(golden_case.Double("factor"), &scratch, image);
  });
}

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

Image MakeImage(int height, int width, const std::vector<uint8_t>& pixels) {
  Image image;
  std::copy(pixels.begin(), pixels.end(), image.Allocate(height, width, 1));
  return image;
}

TEST(Photometric, AutoContrastOfAPlainImage_ChangesNothing) {
  Image image = MakeImage(1, 3, {7, 7, 7});
  AutoContrast(&image);
  EXPECT_EQ(Pixels(image), (std::vector<uint8_t>{7, 7, 7}));
}

TEST(Photometric, AutoContrast_FillsTheRange) {
  Image image = MakeImage(1, 3, {10, 20, 30});
  AutoContrast(&image);
  EXPECT_EQ(Pixels(image), (std::vector<uint8_t>{0, 127, 255}));
}

TEST(Photometric, SharpnessZero_SmoothsTheInsideOnly) {
  Image image = MakeImage(3, 3, {13, 0, 0, 0, 26, 0, 0, 0, 0});
  Image scratch;
  AdjustSharpness(0.0, &scratch, &image);
  EXPECT_EQ(Pixels(image), (std::vector<uint8_t>{13, 0, 0, 0, 11, 0, 0, 0, 0}));  // (13 + 5 * 26) / 13
}

TEST(Photometric, SharpnessOfAnImageWithoutInside_ChangesNothing) {
  Image image = MakeImage(2, 3, {1, 2, 3, 4, 5, 6});
  Image scratch;
  AdjustSharpness(0.0, &scratch, &image);
  EXPECT_EQ(Pixels(image), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace ssl
