// SPDX-License-Identifier: Apache-2.0
//
// Resampler on many boxes and sizes, drawn from a seed, against the definition of the filter in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/resample.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20251122;

int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, std::max(least, most))(*random);
}

// Half the contrast: a cubic overshoots, and here nothing of that is cut off between the passes.
Image DrawImage(std::mt19937_64* random, int height, int width, int channels) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels);
  std::generate_n(pixels, image.size_bytes(), [&] { return static_cast<uint8_t>(Draw(random, 64, 191)); });
  return image;
}

double WeightAt(Interpolation interpolation, double x) {
  x = std::abs(x);
  if (interpolation == Interpolation::kBilinear) return std::max(0.0, 1.0 - x);
  if (x < 1.0) return 1.5 * x * x * x - 2.5 * x * x + 1.0;
  return x < 2.0 ? -0.5 * x * x * x + 2.5 * x * x - 4.0 * x + 2.0 : 0.0;
}

// The weights of all `in` pixels for each of `out`: the kernel, stretched when reducing, cut at the ends of its window
// (which are rounded to whole pixels) and normalised.
std::vector<std::vector<double>> NaiveWeights(Interpolation interpolation, int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  const double support = stretch * (interpolation == Interpolation::kBilinear ? 1.0 : 2.0);
  std::vector<std::vector<double>> weights(out, std::vector<double>(in));
  for (int x = 0; x < out; ++x) {
    const double centre = (x + 0.5) * scale;
    double total = 0.0;
    for (int i = 0; i < in; ++i) {
      if (i < static_cast<int>(centre - support + 0.5) || i >= static_cast<int>(centre + support + 0.5)) continue;
      weights[x][i] = WeightAt(interpolation, (i + 0.5 - centre) / stretch);
      total += weights[x][i];
    }
    for (double& weight : weights[x]) weight /= total;
  }
  return weights;
}

// One channel of the box, rows first: without rounding between, the order does not matter.
std::vector<double> NaiveResize(Interpolation interpolation, const Image& source, const CropBox& box, int channel,
                                int height, int width) {
  const auto horizontal = NaiveWeights(interpolation, box.width, width);
  const auto vertical = NaiveWeights(interpolation, box.height, height);
  std::vector<double> rows(static_cast<size_t>(box.height) * width);
  for (int y = 0; y < box.height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int i = 0; i < box.width; ++i) {
        rows[y * width + x] += horizontal[x][i] * source.row(box.top + y)[(box.left + i) * source.channels() + channel];
      }
    }
  }
  std::vector<double> result(static_cast<size_t>(height) * width);
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < box.height; ++i) {
      for (int x = 0; x < width; ++x) result[y * width + x] += vertical[y][i] * rows[i * width + x];
    }
  }
  return result;
}

// Both passes round by half a level, and a cubic's second one enlarges the first one's by its absolute weights.
void CheckResize(Resampler* resampler, const Image& source, const CropBox& box, int height, int width,
                 Interpolation interpolation) {
  SCOPED_TRACE(::testing::Message() << "box " << box.top << " " << box.left << " " << box.height << " " << box.width
                                    << " of " << source.height() << " x " << source.width() << " x "
                                    << source.channels() << " to " << height << " x " << width);
  Image result;
  resampler->CropAndResize(source, box, height, width, &result, interpolation);
  const double tolerance = interpolation == Interpolation::kBilinear ? 1.01 : 1.14;
  for (int channel = 0; channel < source.channels(); ++channel) {
    const std::vector<double> expected = NaiveResize(interpolation, source, box, channel, height, width);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(result.pixels()[i * source.channels() + channel], expected[i], tolerance) << "pixel " << i;
    }
  }
}

TEST(ResampleShapes, DrawnBoxesAndSizes_AreCloseToTheNaiveFilter) {
  std::mt19937_64 random(kSeed);
  Resampler resampler;
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    const int most = i % 5 == 0 ? 333 : 61;
    const int channels = i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : Draw(&random, 1, 6);
    const Image source = DrawImage(&random, Draw(&random, 1, most), Draw(&random, 1, most), channels);
    CropBox box = {0, 0, Draw(&random, 1, source.height()), Draw(&random, 1, source.width())};
    box.top = Draw(&random, 0, source.height() - box.height);
    box.left = Draw(&random, 0, source.width() - box.width);
    CheckResize(&resampler, source, box, Draw(&random, 1, 77), Draw(&random, 1, 77),
                i % 2 == 0 ? Interpolation::kBilinear : Interpolation::kBicubic);
  }
}

// The last rows and columns: a read past the image would leave the memory that belongs to it.
TEST(ResampleShapes, BoxAtTheLastPixel_ReadsNoFurther) {
  std::mt19937_64 random(kSeed);
  Resampler resampler;
  for (const int side : {1, 2, 3, 17, 64}) {
    const Image source = DrawImage(&random, side, side, 3);
    for (const int size : {1, 2, 5, 31, 65}) {
      CheckResize(&resampler, source, {side - 1, side - 1, 1, 1}, size, size, Interpolation::kBicubic);
      CheckResize(&resampler, source, {side / 2, side / 2, side - side / 2, side - side / 2}, size, 3,
                  Interpolation::kBilinear);
    }
  }
}

}  // namespace
}  // namespace ssl
