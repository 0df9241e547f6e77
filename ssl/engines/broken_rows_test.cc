// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/broken_rows.h"

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/read_fault.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BrokenRowsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::map<int64_t, ReadFault>> Read() { return ReadBrokenRows(directory_, "train", PosixFileSystem()); }

  const std::string directory_ = MakeTempDir("broken_rows");
};

TEST_F(BrokenRowsTest, AreReadAsWritten) {
  std::map<int64_t, ReadFault> images;
  for (const ReadFault fault : kKindsOfBroken) images[7 * static_cast<int64_t>(fault)] = fault;
  ASSERT_OK(WriteBrokenRows(directory_, "train", images, PosixFileSystem()));
  EXPECT_EQ(Read().value(), images);
  ASSERT_OK(WriteBrokenRows(directory_, "train", {}, PosixFileSystem()));
  EXPECT_THAT(Read().value(), IsEmpty());
}

TEST_F(BrokenRowsTest, WithoutAFile_AreNone) { EXPECT_THAT(Read().value(), IsEmpty()); }

TEST_F(BrokenRowsTest, AnotherFile_IsAnError) {
  for (const char* text : {"", "{}", "[17]", R"([{"index": 1}])", R"([{"index": -1, "kind": "empty"}])",
                           R"([{"index": 1, "kind": "tired"}])"}) {
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), BrokenRowsFile(directory_, "train"), text));
    EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("train_broken.json holds no list")))
        << text;
  }
}

}  // namespace
}  // namespace ssl
