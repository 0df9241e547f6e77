// SPDX-License-Identifier: Apache-2.0
//
// Every size, drawn from a seed, against one loop over all values. Where the processor lacks the instructions, that
// this is said.
#include "ssl/data/transforms/blur_avx512.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_avx512.h"
#include "ssl/data/transforms/gaussian_blur.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr uint8_t kUntouched = 77;
constexpr int kGuard = 64;  // bytes after a result

std::vector<uint8_t> Expected(const BlurBox& box, const std::vector<std::vector<uint8_t>>& rows) {
  std::vector<uint8_t> result;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    uint64_t inner = 0;
    for (size_t t = 1; t + 1 < rows.size(); ++t) inner += rows[t][i];
    const uint64_t edges = uint64_t{rows.front()[i]} + rows.back()[i];
    result.push_back(static_cast<uint8_t>((inner * box.weight + edges * box.edge_weight + (1 << 23)) >> 24));
  }
  return result;
}

void Check(const BlurBox& box, const std::vector<std::vector<uint8_t>>& rows, bool is_done) {
  SCOPED_TRACE(::testing::Message() << rows[0].size() << " bytes, radius " << box.radius << ", weight " << box.weight);
  std::vector<const uint8_t*> taps;
  for (const std::vector<uint8_t>& row : rows) taps.push_back(row.data());
  std::vector<uint8_t> result(rows[0].size() + kGuard, kUntouched);
  ASSERT_EQ(BlendTapsByAvx512(box.radius, box.weight, box.edge_weight, taps.data(), rows[0].size(), result.data()),
            is_done);
  std::vector<uint8_t> expected = is_done ? Expected(box, rows) : std::vector<uint8_t>(rows[0].size(), kUntouched);
  expected.resize(result.size(), kUntouched);
  EXPECT_TRUE(result == expected);
}

std::vector<std::vector<uint8_t>> DrawRows(int radius, int64_t size, std::mt19937_64* random) {
  std::vector<std::vector<uint8_t>> rows(2 * radius + 3, std::vector<uint8_t>(size));
  for (std::vector<uint8_t>& row : rows) {
    std::generate(row.begin(), row.end(), [&] { return static_cast<uint8_t>((*random)()); });
  }
  return rows;
}

TEST(BlurAvx512, DrawnRows_EqualTheLoopOverAllValues) {
  std::mt19937_64 random(kSeed);
  for (int64_t size = 64; size < 400 && !::testing::Test::HasFailure(); ++size) {
    for (const float sigma : {0.0f, 0.1f, 0.7f, 1.4f, 1.5f, 2.0f}) {
      const BlurBox box = BlurBoxFor(sigma);
      Check(box, DrawRows(box.radius, size, &random), HasPixelAvx512());
    }
  }
}

TEST(BlurAvx512, WhiteAndBlack_StayAsTheyAre) {
  for (const float sigma : {0.0f, 0.1f, 0.7f, 1.4f, 1.5f, 2.0f}) {
    const BlurBox box = BlurBoxFor(sigma);
    for (const uint8_t level : {0, 255}) {
      Check(box, std::vector<std::vector<uint8_t>>(2 * box.radius + 3, std::vector<uint8_t>(100, level)),
            HasPixelAvx512());
    }
  }
}

TEST(BlurAvx512, ShapesThatDoNotFit_AreLeftToOthers) {
  std::mt19937_64 random(kSeed);
  Check(BlurBoxFor(1.0f), DrawRows(0, 63, &random), false);
  const BlurBox wide = BlurBoxFor(3.0f);
  Check(wide, DrawRows(wide.radius, 100, &random), false);
}

}  // namespace
}  // namespace ssl
