// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

Image RandomImage(int height, int width, int channels) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels);
  CounterRandom random(height, width, channels, 0, 0);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(random.Next());
  return image;
}

TEST(GaussianBlurGolden, EqualsPillowsInEveryPixel) {
  BlurBuffers buffers;
  RunGolden("image", "gaussian_blur", [&](const golden::Case& golden_case) {
    Image image = ToImage(golden_case.steps[0].Input("image"));

    GaussianBlur(static_cast<float>(golden_case.DoubleIn("radius", 0.0, 100.0)), &buffers, &image);

    EXPECT_EQ(LargestDifference(image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  });
}

// One value of a box filter along a line with repeated ends.
uint8_t NaiveBox(const BlurBox& box, const std::vector<uint8_t>& line, int x) {
  const auto at = [&](int i) { return line[std::clamp(i, 0, static_cast<int>(line.size()) - 1)]; };
  uint64_t sum = 1u << 23;
  for (int i = x - box.radius; i <= x + box.radius; ++i) sum += static_cast<uint64_t>(box.weight) * at(i);
  sum += static_cast<uint64_t>(box.edge_weight) * (at(x - box.radius - 1) + at(x + box.radius + 1));
  return static_cast<uint8_t>(sum >> 24);
}

// Three passes along one line of one channel.
void NaiveLine(const BlurBox& box, uint8_t* first, int length, int64_t stride) {
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<uint8_t> line;
    for (int x = 0; x < length; ++x) line.push_back(first[x * stride]);
    for (int x = 0; x < length; ++x) first[x * stride] = NaiveBox(box, line, x);
  }
}

TEST(GaussianBlur, AllSmallShapesAndWideBoxes_EqualTheNaiveFilter) {
  BlurBuffers buffers;
  for (float sigma : {0.0f, 0.3f, 1.0f, 2.0f, 3.7f, 12.0f, 40.0f}) {
    const BlurBox box = BlurBoxFor(sigma);
    for (int channels : {1, 3}) {
      for (int height : {1, 2, 9, 33}) {
        for (int width : {1, 3, 8, 40}) {
          Image image = RandomImage(height, width, channels);
          Image expected = RandomImage(height, width, channels);
          uint8_t* pixels = expected.MutablePixels();
          const int64_t row_size = static_cast<int64_t>(width) * channels;
          for (int i = 0; i < height * channels; ++i) {
            NaiveLine(box, pixels + i / channels * row_size + i % channels, width, channels);
          }
          for (int i = 0; i < row_size; ++i) NaiveLine(box, pixels + i, height, row_size);

          GaussianBlur(sigma, &buffers, &image);

          ASSERT_EQ(LargestDifference(image, expected), 0) << sigma << " " << channels << " " << height << " " << width;
        }
      }
    }
  }
}

TEST(GaussianBlur, Box_HasTheVarianceOfTheGaussian) {
  for (float sigma : {0.2f, 0.7f, 1.3f, 2.0f, 5.0f, 20.0f}) {
    const BlurBox box = BlurBoxFor(sigma);
    double variance = 0.0;
    for (int i = 1; i <= box.radius; ++i) variance += 2.0 * i * i * box.weight;
    variance += 2.0 * (box.radius + 1) * (box.radius + 1) * box.edge_weight;
    EXPECT_NEAR(3.0 * variance / (1 << 24), sigma * sigma, 1e-3 * sigma * sigma + 1e-5) << sigma;
  }
}

TEST(GaussianBlur, LentImage_IsNotChanged) {
  const Image original = RandomImage(6, 7, 3);
  const std::vector<uint8_t> before(original.pixels(), original.pixels() + original.size_bytes());
  Image view;
  view.Borrow(original.pixels(), 6, 7, 3);
  BlurBuffers buffers;

  GaussianBlur(2.0f, &buffers, &view);

  EXPECT_GT(LargestDifference(view, original), 0);
  EXPECT_EQ(std::vector<uint8_t>(original.pixels(), original.pixels() + original.size_bytes()), before);
}

}  // namespace
}  // namespace ssl
