// SPDX-License-Identifier: Apache-2.0
//
// Both passes on many shapes and weights, drawn from a seed, against one loop over all values.
#include "ssl/data/image/resample_passes.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/testing/drawn_filter.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr uint8_t kUntouched = 77;
constexpr int kGuard = 64;  // bytes after a result

DrawnFilter DrawFilter(std::mt19937_64* random, int in, int out, int taps) {
  return DrawFilterAt(random, in, out, taps, [random](int, int most) { return Draw(random, 0, most); });
}

uint8_t ToPixel(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

std::vector<uint8_t> ReferenceWidth(PixelRows source, int height, int channels, const FilterTaps& filter) {
  std::vector<uint8_t> result;
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < filter.out * channels; ++i) {
      const int x = i / channels;
      int64_t sum = 0;
      for (int t = 0; t < filter.taps; ++t) {
        sum += int64_t{filter.weights[x * filter.taps + t]} *
               source.first[y * source.stride + (filter.first[x] + t) * channels + i % channels];
      }
      result.push_back(ToPixel(sum));
    }
  }
  return result;
}

std::vector<uint8_t> ReferenceHeight(PixelRows source, int64_t row_size, const FilterTaps& filter) {
  std::vector<uint8_t> result;
  for (int y = 0; y < filter.out; ++y) {
    for (int64_t i = 0; i < row_size; ++i) {
      int64_t sum = 0;
      for (int t = 0; t < filter.taps; ++t) {
        sum += int64_t{filter.weights[y * filter.taps + t]} * source.first[(filter.first[y] + t) * source.stride + i];
      }
      result.push_back(ToPixel(sum));
    }
  }
  return result;
}

void ExpectResult(const std::vector<uint8_t>& result, std::vector<uint8_t> expected) {
  expected.resize(expected.size() + kGuard, kUntouched);
  EXPECT_TRUE(result == expected);
}

// The bytes of `height` rows end with the last row: a read beyond it leaves the memory that belongs to them.
void CheckWidth(std::mt19937_64* random, int height, int channels, const FilterTaps& filter, int gap) {
  SCOPED_TRACE(::testing::Message() << height << " x " << filter.in << " x " << channels << " to " << filter.out
                                    << " with " << filter.taps << " taps");
  const int64_t stride = filter.in * channels + gap;
  const std::vector<uint8_t> pixels = DrawBytes(random, (height - 1) * stride + filter.in * channels);
  std::vector<uint8_t> result(height * filter.out * channels + kGuard, kUntouched);
  std::vector<uint8_t> buffer;
  FilterWidth({pixels.data(), stride}, height, channels, filter, &buffer, result.data());
  ExpectResult(result, ReferenceWidth({pixels.data(), stride}, height, channels, filter));
}

void CheckHeight(std::mt19937_64* random, int64_t row_size, const FilterTaps& filter, int gap) {
  SCOPED_TRACE(::testing::Message() << filter.in << " rows of " << row_size << " to " << filter.out << " with "
                                    << filter.taps << " taps");
  const int64_t stride = row_size + gap;
  const std::vector<uint8_t> pixels = DrawBytes(random, (filter.in - 1) * stride + row_size);
  std::vector<uint8_t> result(filter.out * row_size + kGuard, kUntouched);
  FilterHeight({pixels.data(), stride}, row_size, filter, result.data());
  ExpectResult(result, ReferenceHeight({pixels.data(), stride}, row_size, filter));
}

TEST(ResamplePasses, DrawnShapes_EqualTheLoopOverAllValues) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const int most = i % 4 == 0 ? 400 : 40;
    const DrawnFilter filter =
        DrawFilter(&random, Draw(&random, 1, most), Draw(&random, 1, most), Draw(&random, 1, i % 3 == 0 ? 60 : 9));
    const int channels = Draw(&random, 0, 3) == 0 ? Draw(&random, 1, 5) : i % 2 == 0 ? 1 : 3;
    CheckWidth(&random, Draw(&random, 1, 70), channels, filter.Taps(), Draw(&random, 0, 40));
    CheckHeight(&random, Draw(&random, 1, i % 5 == 0 ? 1300 : 70), filter.Taps(), Draw(&random, 0, 40));
  }
}

TEST(ResamplePasses, EveryNumberOfTaps_OnSmallAndOddRows) {
  std::mt19937_64 random(kSeed);
  for (int taps = 1; taps <= 20; ++taps) {
    for (const int size : {1, 5, 15, 16, 17, 31, 33}) {
      const DrawnFilter filter = DrawFilter(&random, std::max(size, taps), size, taps);
      CheckWidth(&random, size, 3, filter.Taps(), 0);
      CheckHeight(&random, size, filter.Taps(), 0);
    }
  }
}

// Sums of the largest size, and cuts at both ends.
TEST(ResamplePasses, LargestWeightsOnWhite_AreCutAndDoNotOverflow) {
  constexpr int32_t kLargest = 5 << (kWeightBits - 2);  // 1.25
  for (const int32_t weight : {kLargest, -kLargest}) {
    const std::vector<uint8_t> white(100, 255);
    const std::vector<int> first(10, 0);
    const std::vector<int32_t> weights(10, weight);
    std::vector<uint8_t> result(100);
    std::vector<uint8_t> buffer;
    FilterWidth({white.data(), 10}, 10, 1, {10, 10, 1, first.data(), weights.data()}, &buffer, result.data());
    EXPECT_EQ(result, std::vector<uint8_t>(100, weight > 0 ? 255 : 0));
    FilterHeight({white.data(), 10}, 10, {10, 10, 1, first.data(), weights.data()}, result.data());
    EXPECT_EQ(result, std::vector<uint8_t>(100, weight > 0 ? 255 : 0));
  }
}

}  // namespace
}  // namespace ssl
