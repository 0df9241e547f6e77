// SPDX-License-Identifier: Apache-2.0
//
// Both passes on many shapes and weights, drawn from a seed, against those that every processor runs. Where the
// processor lacks the instructions, that this is said.
#include "ssl/data/image/resample_avx512.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_avx512.h"
#include "ssl/data/image/resample_passes.h"
#include "ssl/data/image/testing/drawn_filter.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr uint8_t kUntouched = 77;
constexpr int kGuard = 64;  // bytes after a result

// Windows that advance evenly over the input, as those of a resampling do.
DrawnFilter DrawFilter(std::mt19937_64* random, int in, int out, int taps) {
  return DrawFilterAt(random, in, out, taps, [out](int x, int most) { return x * most / std::max(out - 1, 1); });
}

// The bytes of `height` rows end with the last row: a read beyond it leaves the memory that belongs to them.
void CheckWidth(std::mt19937_64* random, int height, int channels, const FilterTaps& filter, bool is_done) {
  SCOPED_TRACE(::testing::Message() << height << " x " << filter.in << " x " << channels << " to " << filter.out
                                    << " with " << filter.taps << " taps");
  const int64_t stride = filter.in * channels + Draw(random, 0, 40);
  const std::vector<uint8_t> pixels = DrawBytes(random, (height - 1) * stride + filter.in * channels);
  std::vector<uint8_t> result(height * filter.out * channels + kGuard, kUntouched);
  ASSERT_EQ(FilterWidthByAvx512({pixels.data(), stride}, height, channels, filter, result.data()), is_done);
  if (!is_done) return;
  std::vector<uint8_t> expected(result.size(), kUntouched);
  std::vector<uint8_t> buffer;
  FilterWidth({pixels.data(), stride}, height, channels, filter, &buffer, expected.data());
  EXPECT_TRUE(result == expected);
}

void CheckHeight(std::mt19937_64* random, int64_t row_size, const FilterTaps& filter, bool is_done) {
  SCOPED_TRACE(::testing::Message() << filter.in << " rows of " << row_size << " to " << filter.out << " with "
                                    << filter.taps << " taps");
  const int64_t stride = row_size + Draw(random, 0, 40);
  const std::vector<uint8_t> pixels = DrawBytes(random, (filter.in - 1) * stride + row_size);
  std::vector<uint8_t> result(filter.out * row_size + kGuard, kUntouched);
  ASSERT_EQ(FilterHeightByAvx512({pixels.data(), stride}, row_size, filter, result.data()), is_done);
  if (!is_done) return;
  std::vector<uint8_t> expected(result.size(), kUntouched);
  FilterHeight({pixels.data(), stride}, row_size, filter, expected.data());
  EXPECT_TRUE(result == expected);
}

TEST(ResampleAvx512, Widths_EqualThoseOfEveryProcessor) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
    const int out = Draw(&random, 16, i % 4 == 0 ? 900 : 100);
    // Up to 2.2 times as wide: the windows of six pixels fit.
    const int in = Draw(&random, 1, out * 11 / 5);
    const DrawnFilter filter = DrawFilter(&random, in, out, Draw(&random, 1, 7));
    CheckWidth(&random, Draw(&random, 1, 70), i % 3 + 1, filter.Taps(), HasPixelAvx512());
  }
}

TEST(ResampleAvx512, Heights_EqualThoseOfEveryProcessor) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
    const DrawnFilter filter = DrawFilter(&random, Draw(&random, 1, 300), Draw(&random, 1, 100), Draw(&random, 1, 8));
    CheckHeight(&random, Draw(&random, 64, i % 5 == 0 ? 1300 : 200), filter.Taps(), HasPixelAvx512());
  }
}

TEST(ResampleAvx512, ShapesThatDoNotFit_AreLeftToOthers) {
  std::mt19937_64 random(kSeed);
  CheckWidth(&random, 3, 3, DrawFilter(&random, 20, 5, 2).Taps(), false);     // 15 values
  CheckWidth(&random, 3, 3, DrawFilter(&random, 400, 100, 5).Taps(), false);  // windows far apart
  CheckWidth(&random, 3, 1, DrawFilter(&random, 100, 100, 9).Taps(), false);  // many taps
  CheckHeight(&random, 63, DrawFilter(&random, 20, 5, 2).Taps(), false);      // short rows
  CheckHeight(&random, 100, DrawFilter(&random, 100, 100, 9).Taps(), false);  // many taps
}

// Sums of the largest size, and cuts at both ends.
TEST(ResampleAvx512, LargestWeightsOnWhite_AreCutAndDoNotOverflow) {
  constexpr int32_t kLargest = 5 << (kWeightBits - 2);  // 1.25
  for (const int32_t weight : {kLargest, -kLargest}) {
    const std::vector<uint8_t> white(64 * 64, 255);
    const std::vector<int> first(64, 0);
    const std::vector<int32_t> weights(64, weight);
    const FilterTaps filter = {64, 64, 1, first.data(), weights.data()};
    const std::vector<uint8_t> expected(64 * 64, weight > 0 ? 255 : 0);
    std::vector<uint8_t> result(64 * 64, kUntouched);
    EXPECT_EQ(FilterWidthByAvx512({white.data(), 64}, 64, 1, filter, result.data()), HasPixelAvx512());
    EXPECT_EQ(result == expected, HasPixelAvx512());
    EXPECT_EQ(FilterHeightByAvx512({white.data(), 64}, 64, filter, result.data()), HasPixelAvx512());
    EXPECT_EQ(result == expected, HasPixelAvx512());
  }
}

}  // namespace
}  // namespace ssl
