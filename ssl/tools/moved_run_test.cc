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
    return TakeDirectoryOfFile(file, {"knn", "linear_eval", "train"}, PosixFileSystem(), root);
  }
  static void MakeCheckpoint(const std::string& run) {
    ASSERT_OK(PosixFileSystem().CreateDirectories(run + "/checkpoints/step_5"));
  }

  const std::string base_ = MakeTempDir("moved");
  const std::string run_ = base_ + "/b";
  const std::string file_ = run_ + "/train_config.yaml";
};

TEST_F(MovedRunTest, FileInARunThatWasMoved_BelongsToWhereItLies) {
  MakeCheckpoint(run_);
  for (const std::string name : {"train", "knn", "knn_linear_eval"}) {
    const std::string file = run_ + "/" + name + "_config.yaml";
    ConfigNode root = RootOf(file, base_ + "/a");
    EXPECT_THAT(Told(&root, file), HasSubstr(name + "_config.yaml:12: config.CHECKPOINT.DIR is " + run_));
    EXPECT_EQ(root.FindPath(kDirectory)->text(), run_);
    EXPECT_EQ(Told(&root, file), "") << "it is there now";
  }
}

TEST_F(MovedRunTest, FileOfARunThatHasStayed_SaysItself) {
  MakeCheckpoint(run_);
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
  MakeCheckpoint(run_);
  ConfigNode typed = RootOf("command line", "runs/a");
  EXPECT_EQ(Told(&typed, file_), "");
}

TEST_F(MovedRunTest, FileThatIsNoCommandsOrHasNoRunBesideIt_IsSomebodysOwn) {
  for (const char* beside : {"/checkpoints", "/.lock", "/checkpoints/step_5.tmp", "/exp/checkpoints/step_5"}) {
    ASSERT_OK(PosixFileSystem().CreateDirectories(run_ + beside));
    ConfigNode without_run = RootOf(file_, "runs/a");
    EXPECT_EQ(Told(&without_run, file_), "") << beside;
  }
  MakeCheckpoint(run_);
  for (const std::string name : {"mine.yaml", "swav_config.yaml", "my_train_config.yaml", "train_knn_config.yaml"}) {
    ConfigNode own_file = RootOf(run_ + "/" + name, "runs/a");
    EXPECT_EQ(Told(&own_file, run_ + "/" + name), "") << name;
    EXPECT_EQ(own_file.FindPath(kDirectory)->text(), "runs/a") << name;
  }
}

}  // namespace
}  // namespace ssl
