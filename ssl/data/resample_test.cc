// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/crop_box.h"
#include "ssl/data/image.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

Image RandomImage(int height, int width, int channels, uint64_t seed) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels);
  CounterRandom random(seed, 0, 0, 0, 0);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(random.Next());
  return image;
}

CropBox Whole(const Image& image) { return {0, 0, image.height(), image.width()}; }

// The triangle filter along one axis in double precision: weight of input i for output x.
std::vector<std::vector<double>> NaiveWeights(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);
  std::vector<std::vector<double>> weights(out, std::vector<double>(in, 0.0));
  for (int x = 0; x < out; ++x) {
    double total = 0.0;
    for (int i = 0; i < in; ++i) {
      weights[x][i] = std::max(0.0, 1.0 - std::abs((i + 0.5 - (x + 0.5) * scale) / support));
      total += weights[x][i];
    }
    for (double& weight : weights[x]) weight /= total;
  }
  return weights;
}

// Both axes at once, without rounding in between. Grey pictures.
std::vector<double> NaiveResize(const Image& source, int height, int width) {
  const auto vertical = NaiveWeights(source.height(), height);
  const auto horizontal = NaiveWeights(source.width(), width);
  std::vector<double> result;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double sum = 0.0;
      for (int i = 0; i < source.height(); ++i) {
        for (int j = 0; j < source.width(); ++j) sum += vertical[y][i] * horizontal[x][j] * source.row(i)[j];
      }
      result.push_back(sum);
    }
  }
  return result;
}

TEST(ResampleGolden, BilinearCropsEqualPillowsInEveryPixel) {
  Resampler resampler;
  int compared = 0;
  for (const golden::Case& golden_case : GoldenCases("image", "resized_crop")) {
    if (golden_case.params.Find("interpolation")->text() != "bilinear") continue;
    SCOPED_TRACE(golden_case.name);
    const std::vector<int64_t> box = golden_case.Ints("box");
    const std::vector<int64_t> size = golden_case.Ints("size");
    const Image source = ToImage(golden_case.steps[0].inputs.at("image"));
    Image result;

    resampler.CropAndResize(
        source,
        {static_cast<int>(box[0]), static_cast<int>(box[1]), static_cast<int>(box[2]), static_cast<int>(box[3])},
        static_cast<int>(size[0]), static_cast<int>(size[1]), &result);

    EXPECT_EQ(LargestDifference(result, ToImage(golden_case.steps[0].outputs.at("image").tensor)), 0);
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(Resample, AllSmallShapes_AreWithinOneLevelOfTheNaiveFilter) {
  Resampler resampler;
  Image result;
  for (int in : {1, 2, 3, 5, 8, 13, 28}) {
    for (int out : {1, 2, 3, 7, 16, 28}) {
      const Image source = RandomImage(in, 29 - in, 1, in * 100 + out);
      resampler.CropAndResize(source, Whole(source), out, 17, &result);
      const std::vector<double> expected = NaiveResize(source, out, 17);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Two roundings of half a level, and the fixed-point weights.
        ASSERT_NEAR(result.pixels()[i], expected[i], 1.01) << in << " to " << out << ", pixel " << i;
      }
    }
  }
}

TEST(Resample, SameSize_IsACopyOfTheBox) {
  const Image source = RandomImage(9, 11, 3, 1);
  Resampler resampler;
  Image result;

  resampler.CropAndResize(source, {2, 3, 5, 6}, 5, 6, &result);

  for (int y = 0; y < 5; ++y) {
    for (int i = 0; i < 18; ++i) EXPECT_EQ(result.row(y)[i], source.row(y + 2)[9 + i]);
  }
}

TEST(Resample, ConstantPicture_StaysConstantAtEverySize) {
  Resampler resampler;
  Image source;
  Image result;
  for (int level : {0, 1, 127, 254, 255}) {
    uint8_t* pixels = source.Allocate(37, 23, 3);
    std::fill(pixels, pixels + source.size_bytes(), static_cast<uint8_t>(level));
    for (int side = 1; side < 60; ++side) {
      resampler.CropAndResize(source, Whole(source), side, 61 - side, &result);
      for (int64_t i = 0; i < result.size_bytes(); ++i) ASSERT_EQ(result.pixels()[i], level) << side;
    }
  }
}

TEST(Resample, GreyEqualsEachChannelOfTheSameColourPicture) {
  const Image grey = RandomImage(21, 34, 1, 3);
  Image colour;
  uint8_t* pixels = colour.Allocate(21, 34, 3);
  for (int64_t i = 0; i < colour.size_bytes(); ++i) pixels[i] = grey.pixels()[i / 3];
  Resampler resampler;
  Image grey_result;
  Image colour_result;
  for (int side : {7, 16, 28, 50}) {
    resampler.CropAndResize(grey, {1, 2, 19, 30}, side, side + 3, &grey_result);
    resampler.CropAndResize(colour, {1, 2, 19, 30}, side, side + 3, &colour_result);
    for (int64_t i = 0; i < colour_result.size_bytes(); ++i) {
      ASSERT_EQ(colour_result.pixels()[i], grey_result.pixels()[i / 3]);
    }
  }
}

TEST(Resample, ReusedResampler_GivesTheResultsOfAFreshOne) {
  const Image source = RandomImage(600, 40, 1, 5);
  Resampler reused;
  Image first;
  Image second;
  // More pairs of sizes than the cache holds, some of which share a place: 549 + 37 * 1 and 37 + 37 * 1 modulo 512.
  for (int round = 0; round < 2; ++round) {
    for (int height = 1; height <= 600; height += 7) {
      for (int side : {1, 3, 16}) {
        const CropBox box = {0, 0, height, 37};
        reused.CropAndResize(source, box, side, side, &first);
        Resampler fresh;
        fresh.CropAndResize(source, box, side, side, &second);
        ASSERT_EQ(LargestDifference(first, second), 0) << height << " to " << side;
      }
    }
  }
  reused.CropAndResize(source, {0, 0, 549, 37}, 1, 1, &first);
  Resampler fresh;
  fresh.CropAndResize(source, {0, 0, 549, 37}, 1, 1, &second);
  EXPECT_EQ(LargestDifference(first, second), 0);
}

}  // namespace
}  // namespace ssl
