// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/leftovers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/host_name.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::UnorderedElementsAre;

class LeftoversTest : public ::testing::Test {
 protected:
  void Leave(const std::string& name, const std::string& text) {
    ASSERT_OK(files_.CreateDirectories(ParentDirectory(absl::StrCat(directory_, "/", name))));
    ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/", name), text));
  }
  std::vector<std::string> In(const std::string& folder) {
    return files_.List(absl::StrCat(directory_, "/", folder)).value_or(std::vector<std::string>());
  }
  static std::string LogOf(int64_t process, const std::string& host = HostName("unknown")) {
    const std::string who = absl::StrReplaceAll(
        IntroductionOfThisProcess(), {{absl::StrCat(getpid()), absl::StrCat(process)}, {HostName("unknown"), host}});
    return absl::StrCat("12:00:00 I command.cc:1 rank 3 of 4", who, "\nmore\n");
  }
  // A process that is no more.
  static int64_t Ended() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  }

  const std::string directory_ = MakeTempDir("leftovers");
  FileSystem& files_ = PosixFileSystem();
};

TEST_F(LeftoversTest, MarksAndFilesOfRanksThatAreNoMoreGo) {
  Leave(".shared-17-a", "");
  Leave("log.txt", LogOf(Ended()));
  for (const int rank : {1, 2, 3, 12}) {
    Leave(absl::StrCat("logs/rank", rank, ".txt"), LogOf(Ended()));
    Leave(absl::StrCat("logs/rank", rank, "_failure.json"), "{}");
  }
  RemoveLeftovers(directory_, 3, files_);
  EXPECT_THAT(In("."), UnorderedElementsAre("log.txt", "logs"));
  EXPECT_THAT(In("logs"), UnorderedElementsAre("rank1.txt", "rank1_failure.json", "rank2.txt", "rank2_failure.json"));
}

// An evaluation of more ranks beside the training.
TEST_F(LeftoversTest, FilesOfProcessesThatMayRunStay) {
  Leave("logs/rank3.txt", absl::StrCat(LogOf(Ended()), LogOf(getpid())));
  Leave("logs/rank4.txt", LogOf(Ended(), "another-host"));
  Leave("logs/rank5.txt", "nobody has introduced himself\n");
  Leave("logs/rank3_knn_failure.json", "{}");
  Leave("logs/ranking.txt", LogOf(Ended()));
  RemoveLeftovers(directory_, 1, files_);
  EXPECT_THAT(In("logs"),
              UnorderedElementsAre("rank3.txt", "rank4.txt", "rank5.txt", "rank3_knn_failure.json", "ranking.txt"));
}

TEST_F(LeftoversTest, NothingIsReadThroughALink) {
  Leave("elsewhere/rank3.txt", LogOf(Ended()));
  ASSERT_EQ(symlink("elsewhere", absl::StrCat(directory_, "/logs").c_str()), 0);
  RemoveLeftovers(directory_, 1, files_);
  EXPECT_THAT(In("elsewhere"), UnorderedElementsAre("rank3.txt"));
}

}  // namespace
}  // namespace ssl
