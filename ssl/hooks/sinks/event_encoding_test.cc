// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/event_encoding.h"

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

// The bytes that the Python package tensorboard 2.21 writes for the same events.
TEST(EventEncoding, FileVersion_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeFileVersion(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
}

TEST(EventEncoding, SessionStart_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeSessionStart(1.5, 300)), "09000000000000f83f10ac023a020801");
}

TEST(EventEncoding, Scalars_HaveTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeScalars(1.5, 300, {{"a", 0.5}, {"b/c", -2.0}})),
            "09000000000000f83f10ac022a160a080a0161150000003f0a0a0a03622f6315000000c0");
}

TEST(EventEncoding, Record_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord("abc")), "0300000000000000b099490e6162636e57f121");
}

TEST(EventEncoding, LargestStep_FitsItsVarint) {
  EXPECT_EQ(absl::BytesToHexString(EncodeSessionStart(0.0, INT64_MAX)),
            "09000000000000000010ffffffffffffffff7f3a020801");
}

}  // namespace
}  // namespace ssl
