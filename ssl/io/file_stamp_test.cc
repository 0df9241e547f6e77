// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/file_stamp.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

TEST(FileStamp, IsEqualUntilTheFileIsReplaced) {
  const std::string path = MakeTempDir("stamp") + "/file";
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, "one"));
  ASSERT_OK_AND_ASSIGN(const FileStamp first, ReadFileStamp(path));
  ASSERT_OK_AND_ASSIGN(const FileStamp again, ReadFileStamp(path));
  EXPECT_TRUE(first == again);
  EXPECT_EQ(first.size, 3);
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, "two"));
  ASSERT_OK_AND_ASSIGN(const FileStamp replaced, ReadFileStamp(path));
  EXPECT_FALSE(first == replaced);
}

TEST(FileStamp, OfAMissingFile_IsNotFound) {
  const std::string path = MakeTempDir("stamp") + "/missing";
  EXPECT_EQ(ReadFileStamp(path).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ssl
