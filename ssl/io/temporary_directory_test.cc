// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/temporary_directory.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TemporaryDirectoryTest : public ::testing::Test {
 protected:
  TemporaryDirectoryTest() { setenv("TMPDIR", place_.c_str(), /*replace=*/1); }
  ~TemporaryDirectoryTest() override { unsetenv("TMPDIR"); }

  const std::string place_ = MakeTempDir("place");
};

TEST_F(TemporaryDirectoryTest, Directory_IsNewPrivateAndRemovedWithItsFiles) {
  {
    ASSERT_OK_AND_ASSIGN(const auto first, TemporaryDirectory::Make("trace"));
    ASSERT_OK_AND_ASSIGN(const auto second, TemporaryDirectory::Make("trace"));
    EXPECT_NE(first->path(), second->path());
    EXPECT_TRUE(absl::StartsWith(first->path(), place_ + "/ssl_trace_")) << first->path();
    struct stat info;
    ASSERT_EQ(lstat(first->path().c_str(), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_OK(PosixFileSystem().Create(first->path() + "/file"));
  }
  EXPECT_THAT(PosixFileSystem().List(place_).value(), IsEmpty());
}

TEST_F(TemporaryDirectoryTest, PlaceThatIsMissing_IsNamed) {
  setenv("TMPDIR", (place_ + "/gone").c_str(), /*replace=*/1);
  EXPECT_THAT(TemporaryDirectory::Make("trace").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(place_ + "/gone/ssl_trace_")));
}

}  // namespace
}  // namespace ssl
