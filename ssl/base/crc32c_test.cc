// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/crc32c.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace ssl {
namespace {

// The definition: one bit at a time.
uint32_t BitwiseCrc32c(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78 : 0);
  }
  return ~crc;
}

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 12345;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

TEST(Crc32cTest, Rfc3720Vectors_Agree) {
  std::string ascending;
  std::string descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(descending), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, TableAndHardware_EqualTheDefinitionAtEveryLengthAndAlignment) {
  const std::string bytes = Pattern(80);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length <= bytes.size(); ++length) {
      const std::string piece = bytes.substr(start, length);
      const absl::string_view view = absl::string_view(bytes).substr(start, length);
      const uint32_t expected = BitwiseCrc32c(piece);
      ASSERT_EQ(crc32c_internal::ExtendTable(0, view), expected) << start << "+" << length;
      if (!crc32c_internal::HardwareAvailable()) continue;
      ASSERT_EQ(crc32c_internal::ExtendHardware(0, view), expected) << start << "+" << length;
    }
  }
}

// Around whole rounds of the three lanes of the instruction.
TEST(Crc32cTest, LongTexts_HaveOneCrcHoweverItIsComputed) {
  std::string bytes(50'000, ' ');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  for (const size_t round : {size_t{4096}, size_t{12288}, size_t{24576}}) {
    for (size_t length = round - 9; length <= round + 9; ++length) {
      const absl::string_view text = absl::string_view(bytes).substr(length % 8, length);
      const uint32_t expected = crc32c_internal::ExtendTable(length, text);
      EXPECT_EQ(ExtendCrc32c(length, text), expected) << length;
      EXPECT_EQ(
          ExtendCrc32c(ExtendCrc32c(length, text.substr(0, 12'290)), text.substr(std::min(length, size_t{12'290}))),
          expected)
          << length;
    }
  }
}

TEST(Crc32cTest, Extend_EqualsTheCrcOfTheWholeAtEverySplit) {
  const std::string bytes = Pattern(100);
  const uint32_t whole = Crc32c(bytes);
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const uint32_t first = Crc32c(bytes.substr(0, split));
    EXPECT_EQ(ExtendCrc32c(first, bytes.substr(split)), whole);
    EXPECT_EQ(crc32c_internal::ExtendTable(first, bytes.substr(split)), whole);
  }
}

TEST(Crc32cTest, EverySingleBitFlip_ChangesTheCrc) {
  std::string bytes = Pattern(64);
  const uint32_t whole = Crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_NE(Crc32c(bytes), whole);
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  }
}

TEST(Crc32cTest, Masked_RotatesAndAddsAsTfRecordDoes) {
  // 0xE3069283 rotated right by 15 is 0x2507C60D; plus 0xA282EAD8.
  EXPECT_EQ(MaskedCrc32c("123456789"), 0xC78AB0E5u);
  EXPECT_EQ(MaskedCrc32c(""), 0xA282EAD8u);
}

}  // namespace
}  // namespace ssl
