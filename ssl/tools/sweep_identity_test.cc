// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_identity.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SweepIdentityTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::vector<std::string>& choices) {
    return CheckRunIdentity(directory_, choices, PosixFileSystem());
  }

  const std::string directory_ = absl::StrCat(MakeTempDir("sweep"), "/sweep_0");
};

TEST_F(SweepIdentityTest, NewDirectories_AreAnyRuns) {
  EXPECT_OK(Check({"config.A=1"}));
  std::filesystem::create_directories(directory_);
  EXPECT_OK(Check({"config.A=1"}));
}

TEST_F(SweepIdentityTest, SameChoices_GoOn_OthersAreRefused) {
  const std::vector<std::string> choices = {"config.A=1", "config.B=[x, \"y\"]"};
  ASSERT_OK(WriteRunIdentity(directory_, choices, PosixFileSystem()));
  ASSERT_OK(WriteRunIdentity(directory_, choices, PosixFileSystem()));
  EXPECT_OK(Check(choices));
  std::ofstream(absl::StrCat(directory_, "/train_config.yaml")) << "config: {}\n";
  ASSERT_OK(WriteRunIdentity(directory_, {"config.A=1"}, PosixFileSystem()));
  EXPECT_OK(Check(choices)) << "the first one's";
  EXPECT_THAT(Check({"config.A=2", "config.B=[x, \"y\"]"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(directory_), HasSubstr("the run of config.A=1"),
                             HasSubstr("expected config.A=2"), HasSubstr("another config.CHECKPOINT.DIR"))));
  EXPECT_THAT(Check({"config.A=1"}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another sweep")));
}

TEST_F(SweepIdentityTest, WhatFailedBeforeItBegan_LeavesItsPlace) {
  ASSERT_OK(WriteRunIdentity(directory_, {"config.DATA=[wrong]"}, PosixFileSystem()));
  std::ofstream(absl::StrCat(directory_, "/failure.json")) << "{}\n";
  EXPECT_OK(Check({"config.DATA=[right]"}));
  ASSERT_OK(WriteRunIdentity(directory_, {"config.DATA=[right]"}, PosixFileSystem()));
  std::ofstream(absl::StrCat(directory_, "/results.json")) << "{}\n";
  EXPECT_OK(Check({"config.DATA=[right]"}));
  EXPECT_FALSE(Check({"config.DATA=[wrong]"}).ok());
}

TEST_F(SweepIdentityTest, RunsOfNoSweep_AreRefused) {
  std::filesystem::create_directories(directory_);
  std::ofstream(absl::StrCat(directory_, "/train_config.yaml")) << "config: {}\n";
  EXPECT_THAT(Check({"config.A=1"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds a run that no sweep has made")));
}

}  // namespace
}  // namespace ssl
