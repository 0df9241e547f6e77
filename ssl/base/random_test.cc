// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

using Block = std::array<uint32_t, 4>;

std::vector<uint32_t> FirstWords(CounterRandom random, int count) {
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = random.Next();
  return words;
}

// kat_vectors of Random123: philox4x32, 10 rounds.
TEST(PhiloxTest, KnownAnswers_OfRandom123) {
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(Philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(CounterRandomTest, SameNames_GiveTheSameStream) {
  EXPECT_EQ(FirstWords(CounterRandom(1, 2, 3, 4, 5), 100), FirstWords(CounterRandom(1, 2, 3, 4, 5), 100));
}

TEST(CounterRandomTest, EachOfTheFive_ChangesTheStream) {
  std::set<std::vector<uint32_t>> streams = {FirstWords(CounterRandom(0, 0, 0, 0, 0), 4)};
  for (uint64_t value : {uint64_t{1}, uint64_t{1} << 40}) {
    streams.insert(FirstWords(CounterRandom(value, 0, 0, 0, 0), 4));
    streams.insert(FirstWords(CounterRandom(0, value, 0, 0, 0), 4));
    streams.insert(FirstWords(CounterRandom(0, 0, value, 0, 0), 4));
    streams.insert(FirstWords(CounterRandom(0, 0, 0, value, 0), 4));
    streams.insert(FirstWords(CounterRandom(0, 0, 0, 0, value), 4));
  }
  EXPECT_EQ(streams.size(), 11u);
}

TEST(CounterRandomTest, NeighbouringStreams_DoNotMeet) {
  std::set<uint64_t> first;
  for (uint64_t sample = 0; sample < 100; ++sample) {
    for (uint64_t view = 0; view < 10; ++view) {
      CounterRandom random(7, 0, sample, view, 0);
      first.insert(uint64_t{random.Next()} << 32 | random.Next());
    }
  }
  EXPECT_EQ(first.size(), 1000u);
}

TEST(CounterRandomTest, Uniform_IsInRangeWithTheMomentsOfTheUniform) {
  CounterRandom random(3, 0, 0, 0, 0);
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
}

TEST(CounterRandomTest, UniformRange_ExcludesItsEnd) {
  CounterRandom random(3, 0, 0, 0, 0);
  const double hi = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(random.Uniform(1.0, hi), 1.0);
  EXPECT_EQ(random.Uniform(2.0, 2.0), 2.0);
  EXPECT_EQ(random.Uniform(2.0, 1.0), 2.0);
}

TEST(CounterRandomTest, UniformInt_IsFairOverItsInclusiveRange) {
  CounterRandom random(3, 1, 0, 0, 0);
  constexpr int kValues = 7;
  constexpr int kCount = 70000;
  std::array<int, kValues> counts = {};
  for (int i = 0; i < kCount; ++i) {
    const int64_t value = random.UniformInt(-3, 3);
    ASSERT_GE(value, -3);
    ASSERT_LE(value, 3);
    ++counts[value + 3];
  }
  for (int count : counts) EXPECT_NEAR(count, kCount / kValues, 500);  // 5 standard deviations
}

TEST(CounterRandomTest, UniformInt_EdgesOfTheType) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CounterRandom random(3, 1, 0, 0, 0);
  EXPECT_EQ(random.UniformInt(5, 5), 5);
  EXPECT_EQ(random.UniformInt(5, 4), 5);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const int64_t value = random.UniformInt(kLeast, kMost);
    negative = negative || value < 0;
    positive = positive || value > 0;
    EXPECT_GE(random.UniformInt(kMost - 1, kMost), kMost - 1);
    EXPECT_LE(random.UniformInt(kLeast, kLeast + 1), kLeast + 1);
  }
  EXPECT_TRUE(negative && positive);
}

TEST(CounterRandomTest, Bernoulli_HitsItsProbability) {
  CounterRandom random(3, 2, 0, 0, 0);
  int hits = 0;
  for (int i = 0; i < 100000; ++i) {
    hits += random.Bernoulli(0.2) ? 1 : 0;
    ASSERT_FALSE(random.Bernoulli(0.0));
    ASSERT_TRUE(random.Bernoulli(1.0));
  }
  EXPECT_NEAR(hits, 20000, 640);  // 5 standard deviations
}

// Augmentations of saved runs depend on these values: a change breaks every resume. They
// were computed by an independent program (SplitMix64 chain, then Philox).
TEST(CounterRandomTest, Stream_StaysTheSameAcrossVersions) {
  EXPECT_EQ(FirstWords(CounterRandom(1, 2, 3, 4, 5), 5),
            (std::vector<uint32_t>{1587972592, 2968120060, 1003774965, 3185585985, 4240995418}));
}

}  // namespace
}  // namespace ssl
