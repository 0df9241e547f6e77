// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/testing/fault_file_system.h"

#include <errno.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Repeat = FaultFileSystem::Repeat;

class FaultFileSystemTest : public ::testing::Test {
 protected:
  std::string Path(absl::string_view name) const { return absl::StrCat(dir_, "/", name); }

  // What a power loss leaves of the file, or "(gone)".
  std::string AfterPowerLoss(absl::string_view name) {
    EXPECT_OK(faults_.DropUnsynced());
    return PosixFileSystem().Read(Path(name)).value_or("(gone)");
  }

  void WriteFile(absl::string_view name, absl::string_view bytes, bool sync) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, faults_.Create(Path(name)));
    ASSERT_OK(file->Append(bytes));
    if (sync) {
      ASSERT_OK(file->Sync());
    }
    ASSERT_OK(file->Close());
  }

  const std::string dir_ = MakeTempDir("fault");
  FaultFileSystem faults_{PosixFileSystem(), dir_};
};

TEST_F(FaultFileSystemTest, FailOnce_FailsThatCallOnly) {
  faults_.FailCall(2, ENOSPC, Repeat::kOnce);
  EXPECT_OK(faults_.CreateDirectories(Path("a")));
  EXPECT_THAT(faults_.CreateDirectories(Path("b")), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_OK(faults_.CreateDirectories(Path("c")));
  EXPECT_EQ(faults_.calls(), 3);
  EXPECT_EQ(faults_.failed_calls(), 1);
  EXPECT_THAT(faults_.List(dir_).value(), ElementsAre("a", "c"));
}

TEST_F(FaultFileSystemTest, FailFromThenOn_FailsAllLaterMutatingCalls) {
  WriteFile("f", "x", /*sync=*/true);
  faults_.FailCall(faults_.calls() + 1, EIO, Repeat::kFromThenOn);
  const auto fails = StatusIs(absl::StatusCode::kDataLoss);
  EXPECT_THAT(faults_.Create(Path("g")), fails);
  EXPECT_THAT(faults_.OpenAppend(Path("f")), fails);
  EXPECT_THAT(faults_.CreateDirectories(Path("d")), fails);
  EXPECT_THAT(faults_.Rename(Path("f"), Path("g")), fails);
  EXPECT_THAT(faults_.Exchange(Path("f"), Path("g")), fails);
  EXPECT_THAT(faults_.RemoveFile(Path("f")), fails);
  EXPECT_THAT(faults_.RemoveAll(Path("f")), fails);
  EXPECT_THAT(faults_.SyncDirectory(dir_), fails);
  EXPECT_THAT(faults_.Lock(Path("lock")), fails);
  EXPECT_THAT(faults_.List(dir_).value(), ElementsAre("f"));
  EXPECT_EQ(faults_.Read(Path("f")).value(), "x");
}

TEST_F(FaultFileSystemTest, ReadingCalls_FailWhenAskedTo) {
  WriteFile("f", "x", /*sync=*/true);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ReadableFile> opened, faults_.OpenRead(Path("f")));
  const int before = faults_.calls();
  faults_.set_fault_reads(true);
  faults_.FailCall(before + 1, EACCES, Repeat::kFromThenOn);
  const auto fails = StatusIs(absl::StatusCode::kPermissionDenied);
  std::string into(1, ' ');
  EXPECT_THAT(opened->ReadAt(0, absl::MakeSpan(into)), fails);
  EXPECT_THAT(faults_.OpenRead(Path("f")), fails);
  EXPECT_THAT(faults_.Map(Path("f")), fails);
  EXPECT_THAT(faults_.Read(Path("f")), fails);
  EXPECT_THAT(faults_.Size(Path("f")), fails);
  EXPECT_THAT(faults_.List(dir_), fails);
  EXPECT_THAT(faults_.ListEntries(dir_), fails);
  EXPECT_THAT(faults_.Identity(dir_), fails);
  EXPECT_FALSE(faults_.Exists(Path("f")));
  EXPECT_FALSE(faults_.IsDirectory(dir_));
  EXPECT_EQ(faults_.failed_calls(), 10);
}

TEST_F(FaultFileSystemTest, Exit_EndsTheProcessBeforeTheCall) {
  EXPECT_EXIT(
      {
        faults_.ExitAtCall(2, 99);
        faults_.CreateDirectories(Path("a")).IgnoreError();
        faults_.CreateDirectories(Path("b")).IgnoreError();
      },
      ::testing::ExitedWithCode(99), "");
  EXPECT_THAT(PosixFileSystem().List(dir_).value(), ElementsAre("a"));
}

TEST_F(FaultFileSystemTest, Mixture_KeepsWhatWasSynced_AndAnyPartOfTheRest) {
  WriteFile("synced", "x", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  bool lost = false;
  bool kept = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultFileSystem faults(PosixFileSystem(), dir_);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, faults.Create(Path("unsynced")));
    ASSERT_OK(file->Append("y"));
    std::mt19937_64 random(seed);
    ASSERT_OK(faults.MixUnsynced(random));
    EXPECT_EQ(PosixFileSystem().Read(Path("synced")).value(), "x");
    (PosixFileSystem().Exists(Path("unsynced")) ? kept : lost) = true;
    ASSERT_OK(PosixFileSystem().RemoveAll(Path("unsynced")));
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(kept);
}

TEST_F(FaultFileSystemTest, ShortWrite_LeavesTheFirstHalf) {
  faults_.FailCall(2, ENOSPC, Repeat::kOnce);
  faults_.set_short_writes(true);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, faults_.Create(Path("f")));
  EXPECT_FALSE(file->Append("123456").ok());
  EXPECT_OK(file->Close());
  EXPECT_EQ(faults_.Read(Path("f")).value(), "123");
}

TEST_F(FaultFileSystemTest, PowerLoss_KeepsSyncedBytesUnderSyncedNames) {
  WriteFile("f", "x", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  EXPECT_EQ(AfterPowerLoss("f"), "x");
}

TEST_F(FaultFileSystemTest, PowerLoss_DropsUnsyncedNames) {
  WriteFile("f", "x", /*sync=*/true);
  EXPECT_EQ(AfterPowerLoss("f"), "(gone)");
}

TEST_F(FaultFileSystemTest, PowerLoss_DropsUnsyncedBytes) {
  WriteFile("f", "x", /*sync=*/false);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  EXPECT_EQ(AfterPowerLoss("f"), "");
}

TEST_F(FaultFileSystemTest, PowerLoss_DropsAppendsAfterTheLastSync) {
  WriteFile("f", "x", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, faults_.OpenAppend(Path("f")));
  ASSERT_OK(file->Append("y"));
  ASSERT_OK(file->Sync());
  ASSERT_OK(file->Append("z"));
  ASSERT_OK(file->Close());
  EXPECT_EQ(AfterPowerLoss("f"), "xy");
}

TEST_F(FaultFileSystemTest, PowerLoss_UndoesUnsyncedRenamesAndRemovals) {
  WriteFile("new", "new", /*sync=*/true);
  WriteFile("old", "old", /*sync=*/true);
  WriteFile("kept", "kept", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  ASSERT_OK(faults_.Rename(Path("new"), Path("old")));
  ASSERT_OK(faults_.RemoveFile(Path("kept")));
  EXPECT_EQ(AfterPowerLoss("old"), "old");
  EXPECT_EQ(faults_.Read(Path("new")).value(), "new");
  EXPECT_EQ(faults_.Read(Path("kept")).value(), "kept");
}

TEST_F(FaultFileSystemTest, PowerLoss_UndoesAnUnsyncedExchange) {
  WriteFile("left", "left", /*sync=*/true);
  WriteFile("right", "right", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  ASSERT_OK(faults_.Exchange(Path("left"), Path("right")));
  EXPECT_EQ(faults_.Read(Path("left")).value(), "right");
  EXPECT_EQ(AfterPowerLoss("left"), "left");
  ASSERT_OK(faults_.Exchange(Path("left"), Path("right")));
  ASSERT_OK(faults_.SyncDirectory(dir_));
  EXPECT_EQ(AfterPowerLoss("left"), "right");
}

TEST_F(FaultFileSystemTest, PowerLoss_RenamedDirectoryNeedsBothSyncs) {
  ASSERT_OK(faults_.CreateDirectories(Path("step.tmp")));
  WriteFile("step.tmp/synced", "x", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(Path("step.tmp")));
  WriteFile("step.tmp/unsynced", "x", /*sync=*/true);
  ASSERT_OK(faults_.Rename(Path("step.tmp"), Path("step")));
  ASSERT_OK(faults_.SyncDirectory(dir_));
  ASSERT_OK(faults_.DropUnsynced());
  EXPECT_THAT(faults_.List(dir_).value(), ElementsAre("step"));
  EXPECT_THAT(faults_.List(Path("step")).value(), ElementsAre("synced"));
}

TEST_F(FaultFileSystemTest, PowerLoss_TruncationDestroysOldBytes) {
  WriteFile("f", "old", /*sync=*/true);
  ASSERT_OK(faults_.SyncDirectory(dir_));
  WriteFile("f", "new", /*sync=*/false);
  EXPECT_EQ(AfterPowerLoss("f"), "");
}

TEST_F(FaultFileSystemTest, FilesFromBefore_CountAsDurable) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(Path("d")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, PosixFileSystem().Create(Path("d/f")));
  ASSERT_OK(file->Append("x"));
  FaultFileSystem later(PosixFileSystem(), dir_);
  ASSERT_OK(later.RemoveAll(Path("d")));
  EXPECT_THAT(later.List(dir_).value(), IsEmpty());
  ASSERT_OK(later.DropUnsynced());
  EXPECT_EQ(later.Read(Path("d/f")).value(), "x");
}

TEST_F(FaultFileSystemTest, Lock_WorksThroughIt) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileLock> lock, faults_.Lock(Path("lock")));
  EXPECT_THAT(faults_.Lock(Path("lock")), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace ssl
