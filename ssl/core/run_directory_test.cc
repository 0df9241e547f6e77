// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_directory.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RunDirectory>> Open() { return RunDirectory::Open(path_, files_, *communicator_); }

  FileSystem& files_ = PosixFileSystem();
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  const std::string path_ = MakeTempDir("run_directory") + "/deep/run";
};

TEST_F(RunDirectoryTest, Open_MakesItAndHoldsItUntilItDies) {
  absl::StatusOr<std::unique_ptr<RunDirectory>> first = Open();
  ASSERT_OK(first);
  EXPECT_EQ((*first)->path(), path_);
  EXPECT_OK((*first)->CheckInUse());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(path_)));
  first->reset();
  EXPECT_OK(Open());
}

TEST_F(RunDirectoryTest, RemovedDirectory_IsNoticed) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> directory, Open());
  ASSERT_OK(files_.RemoveAll(path_));
  EXPECT_THAT(directory->CheckInUse(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                AllOf(HasSubstr(path_), HasSubstr("was removed or replaced"))));
  EXPECT_FALSE(files_.Exists(path_));
}

TEST_F(RunDirectoryTest, AnotherRunInTheSamePlace_IsNoticedByTheFirstOnly) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> first, Open());
  ASSERT_OK(files_.RemoveAll(path_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> second, Open());
  EXPECT_THAT(first->CheckInUse(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(second->CheckInUse());
}

TEST_F(RunDirectoryTest, MovedDirectory_IsNoticed) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> directory, Open());
  ASSERT_OK(files_.Rename(path_, path_ + ".old"));
  EXPECT_THAT(directory->CheckInUse(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(RunDirectoryTest, TwoRanks_ShareOneLock) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([this](Communicator& communicator) {
    return RunDirectory::Open(path_, files_, communicator).status();
  }));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> held, Open());
  EXPECT_FALSE(
      ThreadWorld(2, absl::Seconds(30))
          .Run([this](Communicator& communicator) { return RunDirectory::Open(path_, files_, communicator).status(); })
          .ok());
}

}  // namespace
}  // namespace ssl
