// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
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

double Triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Keys' cubic convolution with a = -0.5, expanded.
double Cubic(double x) {
  x = std::abs(x);
  if (x < 1.0) return 1.5 * x * x * x - 2.5 * x * x + 1.0;
  return x < 2.0 ? -0.5 * x * x * x + 2.5 * x * x - 4.0 * x + 2.0 : 0.0;
}

// The filter along one axis in double precision: weight of input i for output x.
std::vector<std::vector<double>> NaiveWeights(Interpolation interpolation, int in, int out) {
  const auto kernel = interpolation == Interpolation::kBicubic ? Cubic : Triangle;
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  std::vector<std::vector<double>> weights(out, std::vector<double>(in, 0.0));
  for (int x = 0; x < out; ++x) {
    double total = 0.0;
    for (int i = 0; i < in; ++i) {
      weights[x][i] = kernel((i + 0.5 - (x + 0.5) * scale) / stretch);
      total += weights[x][i];
    }
    for (double& weight : weights[x]) weight /= total;
  }
  return weights;
}

// Both axes at once, without rounding in between. Grey images.
std::vector<double> NaiveResize(Interpolation interpolation, const Image& source, int height, int width) {
  const auto vertical = NaiveWeights(interpolation, source.height(), height);
  const auto horizontal = NaiveWeights(interpolation, source.width(), width);
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

std::string InterpolationLimit(const golden::Case& golden_case) {
  const std::string& name = golden_case.Text("interpolation");
  return name == "bicubic" || name == "bilinear" ? "" : "no interpolation " + name;
}

TEST(ResampleGolden, CropsEqualPillowsInEveryPixel) {
  Resampler resampler;
  const auto compare = [&](const golden::Case& golden_case) {
    const Extent size = SizeOf(golden_case);
    const Image source = ToImage(golden_case.steps[0].Input("image"));
    Image result;

    resampler.CropAndResize(
        source, BoxOf(golden_case, source), size.height, size.width, &result,
        golden_case.Text("interpolation") == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear);

    EXPECT_EQ(LargestDifference(result, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  };
  RunGolden("image", "resized_crop", compare, &InterpolationLimit);
}

TEST(Resample, AllSmallShapes_AreCloseToTheNaiveFilter) {
  Resampler resampler;
  Image result;
  for (int in : {1, 2, 3, 5, 8, 13, 28}) {
    for (int out : {1, 2, 3, 7, 16, 28}) {
      Image source = RandomImage(in, 29 - in, 1, in * 100 + out);
      resampler.CropAndResize(source, Whole(source), out, 17, &result);
      std::vector<double> expected = NaiveResize(Interpolation::kBilinear, source, out, 17);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Two roundings of half a level, and the fixed-point weights.
        ASSERT_NEAR(result.pixels()[i], expected[i], 1.01) << in << " to " << out << ", pixel " << i;
      }
      // A cubic overshoots: with half the contrast nothing is cut between the passes.
      for (int64_t i = 0; i < source.size_bytes(); ++i) {
        source.MutablePixels()[i] = static_cast<uint8_t>(64 + source.pixels()[i] / 2);
      }
      resampler.CropAndResize(source, Whole(source), out, 17, &result, Interpolation::kBicubic);
      expected = NaiveResize(Interpolation::kBicubic, source, out, 17);
      for (size_t i = 0; i < expected.size(); ++i) {
        // The second pass enlarges the first one's rounding by the sum of its absolute weights, at most 1.25.
        ASSERT_NEAR(result.pixels()[i], expected[i], 1.14) << in << " to " << out << ", pixel " << i;
      }
    }
  }
}

// From the height and width of an image to those of the result, and which pass Pillow 13 takes first: found by
// comparing Image.resize with two calls that change one axis each.
struct PassOrder {
  int from_height, from_width, to_height, to_width;
  bool vertical_first;
};

TEST(Resample, OrderOfThePasses_IsPillows) {
  const std::vector<PassOrder> cases = {{102, 55, 47, 49, true}, {89, 42, 40, 23, true},   {84, 70, 48, 60, true},
                                        {18, 18, 1, 112, true},  {119, 22, 77, 10, true},  {94, 90, 40, 62, false},
                                        {76, 109, 2, 58, false}, {70, 103, 62, 99, false}, {112, 90, 58, 47, false},
                                        {81, 34, 95, 46, false}};
  Resampler resampler;
  Image result, between, expected, other;
  for (const PassOrder& c : cases) {
    const Image source = RandomImage(c.from_height, c.from_width, 1, c.to_width);
    const auto resize = [&](const Image& from, int height, int width, Image* to) {
      resampler.CropAndResize(from, Whole(from), height, width, to);
    };
    resize(source, c.to_height, c.to_width, &result);
    resize(source, c.to_height, c.from_width, &between);
    resize(between, c.to_height, c.to_width, c.vertical_first ? &expected : &other);
    resize(source, c.from_height, c.to_width, &between);
    resize(between, c.to_height, c.to_width, c.vertical_first ? &other : &expected);

    EXPECT_EQ(LargestDifference(result, expected), 0) << c.from_height << " x " << c.from_width;
    EXPECT_GT(LargestDifference(result, other), 0) << c.from_height << " x " << c.from_width;
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

TEST(Resample, ConstantImage_StaysConstantAtEverySize) {
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

TEST(Resample, GreyEqualsEachChannelOfTheSameColourImage) {
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
