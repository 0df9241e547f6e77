// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/random.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace ssl {
namespace {

constexpr int kPhiloxRounds = 10;
constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9;  // golden ratio
constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }

// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA'14).
uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// Depends on the order of the five, so that (epoch 1, sample 2) is not (2, 1).
uint64_t HashStream(uint64_t salt, const std::array<uint64_t, 5>& parts) {
  uint64_t hash = salt;
  for (uint64_t part : parts) hash = Mix(hash ^ Mix(part));
  return hash;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key = {key[0] + kPhiloxWeyl0, key[1] + kPhiloxWeyl1};
  }
  return counter;
}

CounterRandom::CounterRandom(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t view, uint64_t operation) {
  // Two salts give 128 bits that name the stream: streams do not meet by chance.
  const std::array<uint64_t, 5> parts = {seed, epoch, sample, view, operation};
  const uint64_t key = HashStream(0, parts);
  const uint64_t stream = HashStream(1, parts);
  key_ = {Low(key), High(key)};
  counter_ = {0, 0, Low(stream), High(stream)};
}

uint32_t CounterRandom::Next() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t CounterRandom::Next64() {
  const uint64_t high = Next();
  return (high << 32) | Next();
}

double CounterRandom::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1.0p-53; }

double CounterRandom::Uniform(double lo, double hi) {
  const double value = lo + (hi - lo) * Uniform();
  if (hi <= lo) return lo;
  return value < hi ? value : std::nextafter(hi, lo);  // the sum may round up to hi
}

int64_t CounterRandom::UniformInt(int64_t lo, int64_t hi) {
  if (hi <= lo) return lo;
  const uint64_t count = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
  if (count == 0) return static_cast<int64_t>(Next64());  // all 2^64 values
  // 2^64 modulo count values at the bottom are drawn again: the rest divides evenly.
  const uint64_t excess = (0 - count) % count;
  uint64_t value = Next64();
  while (value < excess) value = Next64();
  return static_cast<int64_t>(static_cast<uint64_t>(lo) + value % count);
}

bool CounterRandom::Bernoulli(double p) { return Uniform() < p; }

}  // namespace ssl
