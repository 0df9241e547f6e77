// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/output_folder.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutputFolderTest : public ::testing::Test {
 protected:
  void Link(const std::string& from, const std::string& to) { std::filesystem::create_directory_symlink(to, from); }

  FileSystem& files_ = PosixFileSystem();
  const std::string root_ = MakeTempDir("run");
  const std::string elsewhere_ = MakeTempDir("elsewhere");
};

TEST_F(OutputFolderTest, Create_MakesAllOfItAndAcceptsWhatIsThere) {
  const OutputFolder folder = OutputFolder{root_, "a"}.Below("b//c");
  ASSERT_OK(CreateOutputFolder(folder, files_));
  ASSERT_OK(CreateOutputFolder(folder, files_));
  EXPECT_TRUE(files_.IsDirectory(root_ + "/a/b/c"));
  EXPECT_EQ(folder.path(), root_ + "/a/b//c");
}

TEST_F(OutputFolderTest, LinkInAnyPart_IsRefusedByItsName) {
  ASSERT_OK(files_.CreateDirectories(root_ + "/a"));
  for (const std::string link : {"first", "a/second"}) {
    Link(absl::StrCat(root_, "/", link), elsewhere_);
    for (const std::string below : {"", "/x", "/x/y", "/./x", "/"}) {
      EXPECT_THAT(CreateOutputFolder({root_, link + below}, files_),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           AllOf(HasSubstr(absl::StrCat(root_, "/", link, " is a symbolic link")),
                                 HasSubstr("remove the link"))))
          << link << below;
    }
  }
  EXPECT_THAT(files_.List(elsewhere_).value(), IsEmpty());
}

TEST_F(OutputFolderTest, LinkThatLeadsNowhere_IsRefusedToo) {
  Link(root_ + "/lost", root_ + "/not_there");
  EXPECT_THAT(CheckOutputFolder({root_, "lost/a"}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(OutputFolderTest, Root_MayBeALink) {
  const std::string run = absl::StrCat(root_, "/link");
  Link(run, elsewhere_);
  ASSERT_OK(CreateOutputFolder({run, "a/b"}, files_));
  ASSERT_OK(CreateOutputFolder({run, ""}, files_));
  EXPECT_TRUE(files_.IsDirectory(elsewhere_ + "/a/b"));
}

TEST_F(OutputFolderTest, FailureToMakeIt_IsReported) {
  FaultFileSystem faults(files_, root_);
  faults.FailCall(1, ENOSPC, FaultFileSystem::Repeat::kOnce);
  EXPECT_THAT(CreateOutputFolder({root_, "a"}, faults),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(root_ + "/a")));
}

}  // namespace
}  // namespace ssl
