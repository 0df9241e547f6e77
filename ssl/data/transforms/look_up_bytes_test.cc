// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/look_up_bytes.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(LookUpBytes, EveryNumberOfBytes_BecomesTheirEntries) {
  std::mt19937_64 random(20261123);
  std::vector<uint8_t> table(kByteValues);
  std::iota(table.begin(), table.end(), uint8_t{0});
  std::shuffle(table.begin(), table.end(), random);
  for (int count = 0; count <= 600; ++count) {
    std::vector<uint8_t> bytes(count + 64);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random()); });
    std::vector<uint8_t> expected = bytes;
    std::for_each_n(expected.begin(), count, [&](uint8_t& byte) { byte = table[byte]; });
    LookUpBytes(table.data(), bytes.data(), count);
    ASSERT_EQ(bytes, expected) << count;
  }
}

}  // namespace
}  // namespace ssl
