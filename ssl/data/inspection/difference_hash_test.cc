// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/difference_hash.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/base/stop_token.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A grey image of waves.
Image Waves(int height, int width, double phase, int offset = 0) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double value = std::sin(7.0 * x / width + phase) + std::cos(9.0 * y / height + 2 * phase + 3.0 * x / width);
      pixels[y * width + x] = static_cast<uint8_t>(std::lround(110 + 45 * value) + offset);
    }
  }
  return image;
}

DifferenceHash HashOf(const Image& image) {
  Resampler resampler;
  return ComputeDifferenceHash(image, &resampler).value();
}

// With grey values that look like those of all other bits.
DifferenceHash OfBits(uint64_t bits) {
  DifferenceHash hash = HashOf(Waves(80, 90, 0.0));
  hash.bits = bits;
  return hash;
}

std::vector<DifferenceHash> OfAllBits(const std::vector<uint64_t>& all) {
  std::vector<DifferenceHash> hashes;
  for (const uint64_t bits : all) hashes.push_back(OfBits(bits));
  return hashes;
}

TEST(DifferenceHash, SameSceneInAnotherSizeAndBrightness_LooksAlike) {
  const DifferenceHash hash = HashOf(Waves(120, 160, 0.3));
  EXPECT_TRUE(LooksLike(hash, HashOf(Waves(60, 80, 0.3)), 4));
  EXPECT_TRUE(LooksLike(hash, HashOf(Waves(120, 160, 0.3, /*offset=*/20)), 4));
  EXPECT_FALSE(LooksLike(hash, HashOf(Waves(120, 160, 1.7)), 4));
}

// Both are darker to the right everywhere.
TEST(DifferenceHash, SameBitsAndOtherGreyValues_DoNotLookAlike) {
  Image slope;
  Image edge;
  uint8_t* slope_pixels = slope.Allocate(8, 9, 1);
  uint8_t* edge_pixels = edge.Allocate(8, 9, 1);
  for (int i = 0; i < 72; ++i) {
    slope_pixels[i] = static_cast<uint8_t>(200 - 20 * (i % 9));
    edge_pixels[i] = static_cast<uint8_t>((i % 9 < 8 ? 200 : 40) - i % 9);
  }
  EXPECT_EQ(HashOf(slope).bits, HashOf(edge).bits);
  EXPECT_FALSE(LooksLike(HashOf(slope), HashOf(edge), 4));
  EXPECT_THAT(GroupLookalikes({HashOf(slope), HashOf(edge)}, 4).value(), IsEmpty());
}

TEST(DifferenceHash, BitsAreRowByRow) {
  Image image;  // brighter to the right in the upper half, darker in the lower
  uint8_t* pixels = image.Allocate(8, 9, 3);
  for (int i = 0; i < 72; ++i) {
    const int column = i % 9;
    std::fill_n(pixels + 3 * i, 3, static_cast<uint8_t>(10 * (i / 9 < 4 ? column : 8 - column)));
  }
  EXPECT_EQ(HashOf(image).bits, 0xFFFFFFFF00000000u);
}

TEST(DifferenceHash, NoneForOneColour) {
  Image image;
  std::fill_n(image.Allocate(20, 20, 3), 20 * 20 * 3, uint8_t{90});
  Resampler resampler;
  EXPECT_FALSE(ComputeDifferenceHash(image, &resampler).has_value());
}

TEST(GroupLookalikes, Chains_AreOneGroup) {
  // 1 and 3 differ in 5 bits, and 0 lies between.
  const std::vector<DifferenceHash> hashes = OfAllBits({0x07, 0x00, ~uint64_t{0}, 0x1F, ~uint64_t{0}});
  EXPECT_THAT(GroupLookalikes(hashes, 4).value(), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2, 4)));
  EXPECT_THAT(GroupLookalikes(hashes, 0).value(), ElementsAre(ElementsAre(2, 4)));
  EXPECT_THAT(GroupLookalikes({}, 4).value(), IsEmpty());
}

// All pairs, the slow way.
std::vector<std::vector<int64_t>> GroupByAllPairs(const std::vector<uint64_t>& hashes, int distance) {
  std::vector<std::vector<int64_t>> groups;
  std::set<int64_t> seen;
  for (size_t first = 0; first < hashes.size(); ++first) {
    std::set<int64_t> group;
    const std::function<void(int64_t)> visit = [&](int64_t position) {
      if (!seen.insert(position).second) return;
      group.insert(position);
      for (size_t other = 0; other < hashes.size(); ++other) {
        if (__builtin_popcountll(hashes[position] ^ hashes[other]) <= distance) visit(static_cast<int64_t>(other));
      }
    };
    visit(static_cast<int64_t>(first));
    if (group.size() > 1) groups.emplace_back(group.begin(), group.end());
  }
  return groups;
}

TEST(GroupLookalikes, EqualsTheComparisonOfAllPairs) {
  CounterRandom random(1, 2, 3, 4, 5);
  for (const int distance : {0, 1, 3, 4, 7, 15}) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 120; ++i) {
      const uint64_t drawn = uint64_t{random.Next()} << 32 | random.Next();
      uint64_t hash = i < 40 ? drawn : hashes[i % 40];
      const int flips = i < 40 ? 0 : i % (distance + 3);
      for (int flip = 0; flip < flips; ++flip) hash ^= uint64_t{1} << random.UniformInt(0, 63);
      hashes.push_back(hash);
    }
    EXPECT_EQ(GroupLookalikes(OfAllBits(hashes), distance).value(), GroupByAllPairs(hashes, distance)) << distance;
  }
}

TEST(GroupLookalikes, TellsHowFarItIs) {
  std::vector<DifferenceHash> hashes(3000, OfBits(0));
  for (uint64_t i = 0; i < hashes.size(); ++i) hashes[i].bits = i * 0x9E3779B97F4A7C15u;
  hashes.resize(4000, hashes.front());
  std::vector<int64_t> told;
  ASSERT_OK(GroupLookalikes(hashes, 4, [&told](int64_t done) { told.push_back(done); }));
  ASSERT_GE(told.size(), 10u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.front(), 1000);  // the first of five bands is not yet done
  EXPECT_EQ(told.back(), 4000);
  for (size_t i = 1; i < told.size(); ++i) EXPECT_LE(told[i] - told[i - 1], 800);
}

// Of many frames of one camera.
TEST(GroupLookalikes, AStop_EndsIt) {
  std::vector<DifferenceHash> hashes(500, OfBits(0));
  for (uint64_t i = 0; i < hashes.size(); ++i) hashes[i].grey[0] = static_cast<uint8_t>(i);
  StopToken stop;
  std::vector<int64_t> told;
  const auto stop_at_once = [&](int64_t done) {
    told.push_back(done);
    stop.Request(kStopTerminate);
  };
  EXPECT_THAT(GroupLookalikes(hashes, 4, stop_at_once, &stop),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_THAT(told, ElementsAre(0));
}

}  // namespace
}  // namespace ssl
