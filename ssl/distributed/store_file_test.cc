// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/store_file.h"

#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <fstream>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/store_members.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Of more users than ever come: the last of all would remove the file.
void ComeAsRank(int64_t rank, const std::string& path) {
  c10d::PrefixStore store("ssl/0", c10::make_intrusive<c10d::FileStore>(path, 9));
  store.add("taken", 1);
  Introduce(rank, 2, store);
}

void ComeInAnotherProcess(int64_t rank, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    ComeAsRank(rank, path);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(StoreFileTest, ThatOfEndedProcesses_Goes) {
  const std::string path = MakeTempDir("store") + "/store";
  ComeInAnotherProcess(0, path);
  ComeInAnotherProcess(1, path);
  ASSERT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(RemoveStoreOfEndedRanks(path).value());
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_FALSE(RemoveStoreOfEndedRanks(path).value()) << "nothing is there";
}

TEST(StoreFileTest, ThatOfProcessesThatWereKilledAsTheyWrote_Goes) {
  const std::string path = MakeTempDir("store") + "/store";
  ComeInAnotherProcess(0, path);
  std::ofstream(path, std::ios::app) << "abc";
  EXPECT_FALSE(CheckStoreFile(path).ok());
  EXPECT_TRUE(IsStoreOfEndedRanks(path).value());
  EXPECT_TRUE(RemoveStoreOfEndedRanks(path).value());
}

TEST(StoreFileTest, ThatOfARunningProcess_Stays) {
  const std::string path = MakeTempDir("store") + "/store";
  ComeInAnotherProcess(0, path);
  ComeAsRank(1, path);
  EXPECT_FALSE(RemoveStoreOfEndedRanks(path).value());
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST(StoreFileTest, WhatRanksHaveWrittenWhole_IsAPlaceToMeet) {
  const std::string path = MakeTempDir("store") + "/store";
  EXPECT_OK(CheckStoreFile(path));
  std::ofstream(path).flush();
  EXPECT_OK(CheckStoreFile(path));
  ComeAsRank(0, path);
  EXPECT_OK(CheckStoreFile(path));
}

// c10d would wait for the rest of it for ever.
TEST(StoreFileTest, ACutFileAndOtherThings_AreRefused) {
  const std::string folder = MakeTempDir("store");
  const std::string path = folder + "/store";
  ComeInAnotherProcess(0, path);
  ASSERT_EQ(truncate(path.c_str(), 40), 0);
  EXPECT_THAT(CheckStoreFile(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("remove it")));
  std::ofstream(path) << "stale\n";
  EXPECT_THAT(CheckStoreFile(path),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("its last 6 of 6 bytes are nothing that ranks")));
  EXPECT_THAT(CheckStoreFile(folder), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no file")));
  EXPECT_THAT(RemoveStoreOfEndedRanks(folder).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder)));
  EXPECT_THAT(CheckStoreFile(folder + "/none/store"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("there is no directory")));
}

TEST(StoreFileTest, SomethingElse_Stays) {
  const std::string path = MakeTempDir("store") + "/notes";
  for (const std::string text : {"", "abc", "a long text about /member/ and other things"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(RemoveStoreOfEndedRanks(path).value());
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
}

}  // namespace
}  // namespace ssl
