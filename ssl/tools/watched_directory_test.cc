// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/watched_directory.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

class WatchedDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(files_.CreateDirectories(path_)); }

  FileSystem& files_ = PosixFileSystem();
  const std::string path_ = MakeTempDir("watched") + "/checkpoints";
};

TEST_F(WatchedDirectoryTest, OtherContent_IsTheSameDirectory) {
  const WatchedDirectory directory(path_);
  EXPECT_FALSE(directory.IsReplaced());
  ASSERT_OK(WriteFileAtomically(files_, path_ + "/LATEST", "step_7"));
  ASSERT_OK(files_.CreateDirectories(path_ + "/step_7"));
  ASSERT_OK(files_.RemoveFile(path_ + "/LATEST"));
  EXPECT_FALSE(directory.IsReplaced());
}

TEST_F(WatchedDirectoryTest, RemovedOrMadeAnew_IsReplaced) {
  const WatchedDirectory directory(path_);
  ASSERT_OK(files_.RemoveAll(path_));
  EXPECT_TRUE(directory.IsReplaced());
  ASSERT_OK(files_.CreateDirectories(path_));
  EXPECT_TRUE(directory.IsReplaced());
}

TEST_F(WatchedDirectoryTest, OfNoPlace_IsNeverReplaced) {
  const WatchedDirectory directory(path_ + "/gone");
  ASSERT_OK(files_.CreateDirectories(path_ + "/gone"));
  EXPECT_FALSE(directory.IsReplaced());
}

}  // namespace
}  // namespace ssl
