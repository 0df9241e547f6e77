// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/report_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReportFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(files_.CreateDirectories(run_)); }
  std::string Read(const std::string& path) { return files_.Read(path).value_or("(missing)"); }
  std::vector<std::string> Names(const std::string& directory) { return *files_.List(directory); }

  FileSystem& files_ = PosixFileSystem();
  const std::string base_ = MakeTempDir("report");
  const std::string run_ = base_ + "/run";
};

TEST_F(ReportFileTest, Replace_LeavesTheNewTextAlone) {
  const ReportFile file(run_ + "/failure.json");
  EXPECT_THAT(Names(run_), IsEmpty());
  file.Replace("a longer first text");
  file.Replace("second");
  EXPECT_EQ(Read(run_ + "/failure.json"), "second");
  EXPECT_THAT(Names(run_), ElementsAre("failure.json"));
}

TEST_F(ReportFileTest, DirectoryThatWasReplaced_GetsNothing) {
  const ReportFile file(run_ + "/failure.json");
  ASSERT_OK(files_.RemoveAll(run_));
  ASSERT_OK(files_.CreateDirectories(run_));
  file.Replace("of another run");
  EXPECT_THAT(Names(run_), IsEmpty());
}

TEST_F(ReportFileTest, DirectoryThatWasMoved_GetsItThere) {
  const ReportFile file(run_ + "/failure.json");
  ASSERT_OK(files_.Rename(run_, base_ + "/moved"));
  ASSERT_OK(files_.CreateDirectories(run_));
  file.Replace("text");
  EXPECT_EQ(Read(base_ + "/moved/failure.json"), "text");
  EXPECT_THAT(Names(run_), IsEmpty());
}

TEST_F(ReportFileTest, WhereNothingCanBeWritten_NothingHappens) {
  ReportFile().Replace("text");
  ReportFile("").Replace("text");
  ReportFile(base_ + "/missing/failure.json").Replace("text");
  ReportFile("/dev/null/failure.json").Replace("text");
  ASSERT_OK(files_.CreateDirectories(run_ + "/failure.json/full"));
  ReportFile(run_ + "/failure.json").Replace("text");
  EXPECT_THAT(Names(run_), ElementsAre("failure.json")) << "a directory in its place, and no half of a file beside it";
}

TEST_F(ReportFileTest, Moved_IsTheSameFile) {
  ReportFile first(run_ + "/failure.json");
  ReportFile second;
  second = std::move(first);
  ReportFile third(std::move(second));
  third.Replace("text");
  EXPECT_EQ(Read(run_ + "/failure.json"), "text");
}

}  // namespace
}  // namespace ssl
