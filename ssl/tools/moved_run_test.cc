// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/moved_run.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";

// This is as it is read from `file`.
ConfigNode RootOf(const std::string& file, const std::string& directory) {
  ConfigNode root = ConfigNode::Map();
  ConfigNode node = ConfigNode::FromString(directory);
  node.Relocate({file, 12});
  root.SetPath(kDirectory, std::move(node));
  return root;
}

class MovedRunTest : public ::testing::Test {
 protected:
  std::string Told(ConfigNode* root, const std::string& file) {
    return TakeDirectoryOfFile(file, PosixFileSystem(), root);
  }

  const std::string base_ = MakeTempDir("moved");
  const std::string run_ = base_ + "/b";
  const std::string file_ = run_ + "/train_config.yaml";
};

TEST_F(MovedRunTest, FileInARunThatWasMoved_BelongsToWhereItLies) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(run_ + "/checkpoints"));
  ConfigNode root = RootOf(file_, base_ + "/a");
  EXPECT_THAT(Told(&root, file_), HasSubstr("train_config.yaml:12: config.CHECKPOINT.DIR is " + run_));
  EXPECT_EQ(root.FindPath(kDirectory)->text(), run_);
  EXPECT_EQ(Told(&root, file_), "") << "it is there now";
}

TEST_F(MovedRunTest, FileOfARunThatHasStayed_SaysItself) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(run_ + "/checkpoints"));
  const std::string relative = std::filesystem::relative(run_).string();
  for (const std::string& same : {run_, run_ + "/", base_ + "/./b", relative}) {
    ConfigNode root = RootOf(file_, same);
    EXPECT_EQ(Told(&root, file_), "");
    EXPECT_EQ(root.FindPath(kDirectory)->text(), same);
  }
}

TEST_F(MovedRunTest, FileElsewhere_OrADirectoryThatIsTyped_Stays) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(run_));
  ConfigNode without_run = RootOf(file_, "runs/a");
  EXPECT_EQ(Told(&without_run, file_), "");
  ASSERT_OK(PosixFileSystem().CreateDirectories(run_ + "/checkpoints"));
  ConfigNode typed = RootOf("command line", "runs/a");
  EXPECT_EQ(Told(&typed, file_), "");
  ConfigNode own_file = RootOf(run_ + "/mine.yaml", "runs/a");
  EXPECT_EQ(Told(&own_file, run_ + "/mine.yaml"), "");
}

}  // namespace
}  // namespace ssl
