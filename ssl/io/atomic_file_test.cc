// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/atomic_file.h"

#include <errno.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Repeat = FaultFileSystem::Repeat;

constexpr int kCalls = 6;  // create, append, sync, close, rename, sync directory
constexpr int kRenameCall = 5;

std::string DirWithOldFile() {
  const std::string dir = MakeTempDir("atomic");
  EXPECT_OK(WriteFileAtomically(PosixFileSystem(), dir + "/LATEST", "old"));
  return dir;
}

TEST(AtomicFileTest, Write_ReplacesTheContentAndLeavesNothingElse) {
  const std::string dir = DirWithOldFile();
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), dir + "/LATEST", "new"));
  EXPECT_EQ(PosixFileSystem().Read(dir + "/LATEST").value(), "new");
  EXPECT_THAT(PosixFileSystem().List(dir).value(), ElementsAre("LATEST"));
}

TEST(AtomicFileTest, MissingDirectory_IsAnErrorThatNamesIt) {
  const std::string path = MakeTempDir("atomic") + "/gone/LATEST";
  EXPECT_THAT(WriteFileAtomically(PosixFileSystem(), path, "new"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
}

TEST(AtomicFileTest, Protocol_TakesTheCallsThatTheFaultTestsWalk) {
  const std::string dir = DirWithOldFile();
  FaultFileSystem faults(PosixFileSystem(), dir);
  ASSERT_OK(WriteFileAtomically(faults, dir + "/LATEST", "new"));
  EXPECT_EQ(faults.calls(), kCalls);
}

class AtomicFileFaultTest : public ::testing::TestWithParam<std::tuple<int, int, bool, Repeat>> {};

TEST_P(AtomicFileFaultTest, FailingCall_IsReportedAndTheOldOrNewFileStands) {
  const auto [call, error, short_writes, repeat] = GetParam();
  const std::string dir = DirWithOldFile();
  FaultFileSystem faults(PosixFileSystem(), dir);
  faults.FailCall(call, error, repeat);
  faults.set_short_writes(short_writes);

  const absl::Status status = WriteFileAtomically(faults, dir + "/LATEST", "new");

  EXPECT_THAT(status, StatusIs(error == ENOSPC ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kDataLoss,
                               HasSubstr(dir)));
  const bool renamed = call > kRenameCall;
  EXPECT_EQ(PosixFileSystem().Read(dir + "/LATEST").value(), renamed ? "new" : "old");
  if (repeat == Repeat::kOnce) {
    EXPECT_THAT(PosixFileSystem().List(dir).value(), ElementsAre("LATEST"));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryCall, AtomicFileFaultTest,
                         ::testing::Combine(::testing::Range(1, kCalls + 1), ::testing::Values(ENOSPC, EIO),
                                            ::testing::Bool(), ::testing::Values(Repeat::kOnce, Repeat::kFromThenOn)));

TEST(AtomicFileTest, PowerLossAtEachCall_LeavesTheOldOrTheNewContentWhole) {
  for (int call = 1; call <= kCalls + 1; ++call) {
    const std::string dir = DirWithOldFile();
    FaultFileSystem faults(PosixFileSystem(), dir);
    faults.CrashAtCall(call);
    const absl::Status status = WriteFileAtomically(faults, dir + "/LATEST", "new");
    ASSERT_OK(faults.DropUnsynced());
    const std::string content = PosixFileSystem().Read(dir + "/LATEST").value();
    // An OK is a promise; an error promises only that nothing is torn.
    EXPECT_EQ(status.ok(), call > kCalls);
    EXPECT_EQ(content, status.ok() ? "new" : "old") << "crash at call " << call;
  }
}

TEST(AtomicFileTest, NextWriteAfterAFailure_Succeeds) {
  const std::string dir = DirWithOldFile();
  FaultFileSystem faults(PosixFileSystem(), dir);
  faults.FailCall(1, ENOSPC, Repeat::kFromThenOn);
  EXPECT_FALSE(WriteFileAtomically(faults, dir + "/LATEST", "new").ok());
  faults.StopFailing();
  EXPECT_OK(WriteFileAtomically(faults, dir + "/LATEST", "new"));
  EXPECT_EQ(PosixFileSystem().Read(dir + "/LATEST").value(), "new");
}

}  // namespace
}  // namespace ssl
