// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/folder_root.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// root/a/1 holds "inside", beside root lies "secret", which holds "outside".
class FolderRootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ + "/a");
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), root_ + "/a/1", "inside"));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), outer_ + "/secret", "outside"));
  }

  // What the file at root/`path` holds.
  absl::StatusOr<std::string> Read(const FolderRoot& root, const std::string& path) {
    auto file = root.OpenRead(absl::StrCat(root_, "/", path));
    if (!file.ok()) return file.status();
    std::string bytes((*file)->size(), '\0');
    const absl::Status status = (*file)->ReadAt(0, absl::MakeSpan(bytes));
    if (!status.ok()) return status;
    return bytes;
  }

  const std::string outer_ = MakeTempDir("outer");
  const std::string root_ = outer_ + "/root";
};

TEST_F(FolderRootTest, FilesBelow_AreRead) {
  for (const std::string& folder : {root_, root_ + "/"}) {
    ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(folder));
    EXPECT_EQ(Read(*root, "a/1").value(), "inside");
    EXPECT_EQ(Read(*root, "a/../a/1").value(), "inside");
    ASSERT_OK_AND_ASSIGN(const auto file, root->OpenRead(root_ + "/a/1"));
    std::string more(7, '\0');
    EXPECT_THAT(file->ReadAt(0, absl::MakeSpan(more)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends after 6")));
  }
}

TEST_F(FolderRootTest, LinksBelow_AreFollowedWhereTheyStayInside) {
  std::filesystem::create_symlink("a/1", root_ + "/link");
  std::filesystem::create_symlink("a", root_ + "/folder");
  ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(root_));
  EXPECT_EQ(Read(*root, "link").value(), "inside");
  EXPECT_EQ(Read(*root, "folder/1").value(), "inside");
}

TEST_F(FolderRootTest, WhatLeadsOut_IsRefused) {
  std::filesystem::create_symlink("../secret", root_ + "/relative");
  std::filesystem::create_symlink(outer_ + "/secret", root_ + "/absolute");
  std::filesystem::create_symlink(root_ + "/a/1", root_ + "/absolute_inside");
  std::filesystem::create_symlink("..", root_ + "/up");
  std::filesystem::create_symlink("up/secret", root_ + "/chain");
  std::filesystem::create_symlink("/proc/self/root", root_ + "/magic");
  ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(root_));
  for (const char* path : {"relative", "absolute", "absolute_inside", "up/secret", "chain", "../secret",
                           "a/../../secret", "magic/etc/passwd", "/etc/passwd"}) {
    EXPECT_THAT(Read(*root, path), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("leads out of"))) << path;
  }
  for (const std::string& path :
       {outer_ + "/secret", std::string("a/1"), root_, root_ + "2/1", root_ + std::string("/a/1\0", 5)}) {
    EXPECT_THAT(root->OpenRead(path), testing::Not(IsOk())) << path;
  }
  EXPECT_THAT(Read(*root, "absolute_inside").status().message(), HasSubstr("through a link with an absolute path"));
  EXPECT_THAT(root->OpenRead(outer_ + "/secret"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("does not lie below " + root_ + "/")));
}

TEST_F(FolderRootTest, Folders_AreListedAndLookedUpBelowAlone) {
  std::filesystem::create_symlink("a", root_ + "/in");
  std::filesystem::create_symlink("..", root_ + "/up");
  std::filesystem::create_symlink("loop", root_ + "/loop");
  ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(root_));
  for (const std::string& itself : {root_, root_ + "/", root_ + "/a/.."}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<DirectoryEntry> entries, root->ListEntries(itself));
    ASSERT_OK_AND_ASSIGN(const std::vector<DirectoryEntry> expected, PosixFileSystem().ListEntries(root_));
    ASSERT_EQ(entries.size(), expected.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(entries[i].name, expected[i].name);
      EXPECT_EQ(entries[i].kind, expected[i].kind);
    }
  }
  EXPECT_EQ(root->ListEntries(root_ + "/in").value().at(0).name, "1");
  EXPECT_THAT(root->ListEntries(root_ + "/a/1"), testing::Not(IsOk()));
  ASSERT_OK_AND_ASSIGN(const FolderRoot::Place folder, root->LookUp(root_ + "/in"));
  EXPECT_TRUE(folder.is_directory);
  EXPECT_EQ(folder.identity, PosixFileSystem().Identity(root_ + "/a").value());
  EXPECT_FALSE(root->LookUp(root_ + "/a/1").value().is_directory);
  for (const std::string& path : {root_ + "/up", root_ + "/..", root_ + "/up/root/a", outer_, std::string("/")}) {
    EXPECT_THAT(root->ListEntries(path), StatusIs(absl::StatusCode::kPermissionDenied)) << path;
    EXPECT_THAT(root->LookUp(path), StatusIs(absl::StatusCode::kPermissionDenied)) << path;
  }
  EXPECT_FALSE(root->LookUp(root_ + "/loop").ok());
  EXPECT_THAT(root->LookUp(root_ + "/none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

TEST_F(FolderRootTest, WhatIsNoFile_IsRefusedAtOnce) {
  ASSERT_EQ(mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", root_ + "/loop");
  ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(root_));
  EXPECT_THAT(Read(*root, "fifo"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/fifo")));
  EXPECT_THAT(Read(*root, "a"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/a")));
  EXPECT_THAT(Read(*root, "none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  EXPECT_FALSE(Read(*root, "loop").ok());
  EXPECT_THAT(FolderRoot::Open(outer_ + "/none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

// A link that another process turns from inside to outside and back while files are opened.
TEST_F(FolderRootTest, ALinkThatIsExchanged_NeverLeadsOut) {
  ASSERT_OK_AND_ASSIGN(const auto root, FolderRoot::Open(root_));
  std::filesystem::create_symlink("a/1", root_ + "/in");
  std::filesystem::create_symlink("../secret", root_ + "/out");
  std::filesystem::create_symlink("a/1", root_ + "/swapped");
  std::atomic<bool> done{false};
  std::thread attacker([&] {
    for (int i = 0; !done; ++i) {
      const std::string next = root_ + "/next";
      unlink(next.c_str());
      if (symlink(i % 2 == 0 ? "../secret" : "a/1", next.c_str()) == 0) {
        rename(next.c_str(), (root_ + "/swapped").c_str());
      }
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const absl::StatusOr<std::string> bytes = Read(*root, "swapped");
    if (bytes.ok()) {
      EXPECT_EQ(*bytes, "inside");
    } else {
      EXPECT_THAT(bytes.status().code(), AnyOf(absl::StatusCode::kPermissionDenied, absl::StatusCode::kNotFound));
    }
  }
  done = true;
  attacker.join();
}

}  // namespace
}  // namespace ssl
