// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/byte_buffer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

ByteBuffer Of(absl::string_view text) {
  ByteBuffer buffer;
  std::copy(text.begin(), text.end(), buffer.Allocate(text.size()));
  return buffer;
}

TEST(ByteBuffer, SmallerUse_KeepsTheMemory) {
  ByteBuffer buffer;
  EXPECT_EQ(buffer.view(), "");
  const uint8_t* memory = buffer.Allocate(100);
  EXPECT_EQ(buffer.Allocate(10), memory);
  EXPECT_EQ(buffer.size(), 10u);
  EXPECT_EQ(buffer.Allocate(100), memory);
  buffer.Allocate(0);
  EXPECT_EQ(buffer.view(), "");
}

TEST(ByteBuffer, Copies_AreTheirOwn) {
  ByteBuffer first = Of("abc");
  ByteBuffer copy = first;
  copy.data()[0] = 'x';
  EXPECT_EQ(first.view(), "abc");
  EXPECT_EQ(copy.view(), "xbc");
  const uint8_t* memory = copy.data();
  copy = Of("de");  // moved in
  EXPECT_EQ(copy.view(), "de");
  first = copy;
  EXPECT_EQ(first.view(), "de");
  EXPECT_NE(first.data(), copy.data());
  EXPECT_NE(copy.data(), memory);
}

TEST(ByteBuffer, ExchangedBuffers_KeepTheirMemory) {
  ByteBuffer first = Of("abc"), second = Of("de");
  const uint8_t* memory = first.data();
  std::swap(first, second);
  EXPECT_EQ(first.view(), "de");
  EXPECT_EQ(second.view(), "abc");
  EXPECT_EQ(second.data(), memory);
}

}  // namespace
}  // namespace ssl
