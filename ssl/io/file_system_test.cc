// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/io/errno_status.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class FileSystemTest : public ::testing::Test {
 protected:
  std::string Path(absl::string_view name) const { return absl::StrCat(dir_, "/", name); }

  void WriteFile(const std::string& path, absl::string_view bytes) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(path));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }

  FileSystem& files_ = PosixFileSystem();
  const std::string dir_ = MakeTempDir("file_system");
};

TEST_F(FileSystemTest, WrittenBytes_ComeBack) {
  const std::string bytes = std::string("a\0b\n", 4) + std::string(3 << 20, 'x');
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(Path("f")));
  ASSERT_OK(file->Append(bytes.substr(0, 2)));
  ASSERT_OK(file->Append(bytes.substr(2)));
  ASSERT_OK(file->Sync());
  ASSERT_OK(file->Close());
  ASSERT_OK_AND_ASSIGN(const std::string read, files_.Read(Path("f")));
  EXPECT_TRUE(read == bytes);
  EXPECT_EQ(files_.Size(Path("f")).value(), static_cast<int64_t>(bytes.size()));
}

// Large enough that the disk begins before the sync.
TEST_F(FileSystemTest, LargeFileInPieces_ComesBack) {
  std::string bytes((size_t{20} << 20) + 7, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 8);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(Path("f")));
  constexpr size_t kPiece = 3'000'001;
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    ASSERT_OK(file->Append(absl::string_view(bytes).substr(begin, kPiece)));
  }
  ASSERT_OK(file->Sync());
  ASSERT_OK(file->Close());
  EXPECT_TRUE(*files_.Read(Path("f")) == bytes);
}

TEST_F(FileSystemTest, Create_EmptiesAndOpenAppend_Keeps) {
  WriteFile(Path("f"), "long old content");
  WriteFile(Path("f"), "new");
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.OpenAppend(Path("f")));
    ASSERT_OK(file->Append("er"));
  }
  EXPECT_EQ(files_.Read(Path("f")).value(), "newer");
}

TEST_F(FileSystemTest, ClosedFile_RefusesEveryCall) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(Path("f")));
  ASSERT_OK(file->Close());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(Path("f")));
  EXPECT_THAT(file->Append("x"), refused);
  EXPECT_THAT(file->Sync(), refused);
  EXPECT_THAT(file->Close(), refused);
}

TEST_F(FileSystemTest, MissingFile_IsNotFoundThatNamesThePath) {
  const auto missing = StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr(Path("gone")), HasSubstr("No such file")));
  EXPECT_THAT(files_.Read(Path("gone")), missing);
  EXPECT_THAT(files_.OpenRead(Path("gone")), missing);
  EXPECT_THAT(files_.Size(Path("gone")), missing);
  EXPECT_THAT(files_.List(Path("gone")), missing);
  EXPECT_THAT(files_.RemoveFile(Path("gone")), missing);
  EXPECT_THAT(files_.Rename(Path("gone"), Path("to")), missing);
  EXPECT_THAT(files_.SyncDirectory(Path("gone")), missing);
  EXPECT_THAT(files_.Map(Path("gone")), missing);
  EXPECT_THAT(files_.Create(Path("gone/f")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(files_.Exists(Path("gone")));
  EXPECT_FALSE(files_.IsDirectory(Path("gone")));
}

TEST_F(FileSystemTest, FullDisk_IsResourceExhausted) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.OpenAppend("/dev/full"));
  EXPECT_THAT(file->Append("x"),
              StatusIs(absl::StatusCode::kResourceExhausted, AllOf(HasSubstr("/dev/full"), HasSubstr("No space"))));
}

// A link that somebody put where this program is going to write.
TEST_F(FileSystemTest, PlantedLink_IsNeverWrittenThrough) {
  WriteFile(Path("victim"), "precious");
  ASSERT_EQ(symlink(Path("victim").c_str(), Path("link").c_str()), 0);
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr(Path("link")), HasSubstr("is a symbolic link, and output follows")));
  EXPECT_THAT(files_.OpenAppend(Path("link")), refused);
  EXPECT_THAT(files_.Lock(Path("link")), refused);
  EXPECT_THAT(CheckNoLink(Path("link")), refused);
  EXPECT_OK(CheckNoLink(Path("victim")));
  EXPECT_OK(CheckNoLink(Path("gone")));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(Path("link")));
    ASSERT_OK(file->Append("new"));
  }
  EXPECT_EQ(files_.Read(Path("victim")).value(), "precious");
  EXPECT_OK(CheckNoLink(Path("link"))) << "the link itself was replaced";
  EXPECT_EQ(files_.Read(Path("link")).value(), "new");
}

TEST_F(FileSystemTest, PlantedHardLink_IsReplaced) {
  WriteFile(Path("victim"), "precious");
  ASSERT_EQ(link(Path("victim").c_str(), Path("name").c_str()), 0);
  WriteFile(Path("name"), "new");
  EXPECT_EQ(files_.Read(Path("victim")).value(), "precious");
  EXPECT_EQ(files_.Read(Path("name")).value(), "new");
}

TEST_F(FileSystemTest, PlantedPipe_IsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition, AllOf(HasSubstr("fifo"), HasSubstr("a pipe is")));
  EXPECT_THAT(files_.Create(Path("fifo")), refused);
  EXPECT_THAT(files_.OpenAppend(Path("fifo")), refused);
  EXPECT_THAT(files_.Lock(Path("fifo")), refused);
}

TEST_F(FileSystemTest, NameWithANulByte_IsRefused) {
  WriteFile(Path("f"), "content");
  const std::string path = Path("f") + std::string("\0.jpg", 5);
  EXPECT_THAT(files_.Read(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NUL byte")));
  EXPECT_THAT(files_.Create(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NUL byte")));
}

TEST_F(FileSystemTest, OnlyRegularFiles_AreRead) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const std::vector<std::string> others = {dir_, Path("fifo"), "/dev/zero"};
  for (const std::string& path : others) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(path), HasSubstr("expected a regular file")));
    EXPECT_THAT(files_.Read(path), refused);
    EXPECT_THAT(files_.OpenRead(path), refused);
  }
}

TEST_F(FileSystemTest, Read_OfAFileWithoutASize_ReadsToItsEnd) {
  ASSERT_OK_AND_ASSIGN(const std::string status, files_.Read("/proc/self/status"));
  EXPECT_THAT(status, HasSubstr("Name:"));
}

TEST_F(FileSystemTest, Read_OfAHugeSparseFile_IsRefused) {
  WriteFile(Path("huge"), "");
  ASSERT_EQ(truncate(Path("huge").c_str(), int64_t{1} << 40), 0);
  EXPECT_THAT(files_.Read(Path("huge")), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected at most")));
}

TEST_F(FileSystemTest, ReadAt_GivesTheRangeAndRefusesToRunOverTheEnd) {
  WriteFile(Path("f"), "0123456789");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ReadableFile> file, files_.OpenRead(Path("f")));
  EXPECT_EQ(file->size(), 10);
  std::string into(4, '\0');
  ASSERT_OK(file->ReadAt(6, absl::MakeSpan(into)));
  EXPECT_EQ(into, "6789");
  EXPECT_THAT(file->ReadAt(7, absl::MakeSpan(into)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends after 10 bytes")));
}

TEST_F(FileSystemTest, CreateDirectories_MakesAllOfThemAndAcceptsExistingOnes) {
  ASSERT_OK(files_.CreateDirectories(Path("a/b/c/")));
  ASSERT_OK(files_.CreateDirectories(Path("a/b/c")));
  EXPECT_TRUE(files_.IsDirectory(Path("a/b/c")));
  ASSERT_OK(files_.SyncDirectory(Path("a/b")));
  WriteFile(Path("file"), "");
  EXPECT_THAT(files_.CreateDirectories(Path("file")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(Path("file") + ": is in the way")));
  EXPECT_EQ(DetailOf(files_.CreateDirectories(Path("file")), kDetailErrno), absl::StrCat(EEXIST));
  EXPECT_FALSE(files_.CreateDirectories(Path("file/below")).ok());
}

TEST_F(FileSystemTest, List_GivesSortedNames) {
  for (const char* name : {"b", "a", "B", "step_10", "step_9"}) WriteFile(Path(name), "");
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, files_.List(dir_));
  EXPECT_THAT(names, ElementsAre("B", "a", "b", "step_10", "step_9"));
  EXPECT_THAT(files_.List(Path("a")), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is in the way")));
  EXPECT_EQ(DetailOf(files_.List(Path("a")).status(), kDetailErrno), absl::StrCat(ENOTDIR));
}

TEST_F(FileSystemTest, ListEntries_TellsKindsWithoutFollowingLinks) {
  ASSERT_OK(files_.CreateDirectories(Path("folder")));
  WriteFile(Path("file"), "");
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink("folder", Path("link").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", Path("dangling").c_str()), 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<DirectoryEntry> entries, files_.ListEntries(dir_));
  using Kind = DirectoryEntry::Kind;
  const auto is = [](const std::string& name, Kind kind) {
    return AllOf(Field(&DirectoryEntry::name, name), Field(&DirectoryEntry::kind, kind));
  };
  EXPECT_THAT(entries, ElementsAre(is("dangling", Kind::kLink), is("fifo", Kind::kOther), is("file", Kind::kOther),
                                   is("folder", Kind::kDirectory), is("link", Kind::kLink)));
  EXPECT_THAT(files_.ListEntries(Path("gone")), StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path("gone"))));
  EXPECT_THAT(files_.ListEntries(Path("file")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(files_.ListEntries(dir_ + std::string("\0x", 2)), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FileSystemTest, ListEntries_KeepsNoDescriptor) {
  const size_t open = files_.List("/proc/self/fd")->size();
  for (int i = 0; i < 3; ++i) ASSERT_OK(files_.ListEntries(dir_));
  EXPECT_EQ(files_.List("/proc/self/fd")->size(), open);
}

TEST_F(FileSystemTest, Identity_IsThatOfWhatAPathLeadsTo) {
  ASSERT_OK(files_.CreateDirectories(Path("a/b")));
  ASSERT_EQ(symlink(Path("a").c_str(), Path("a/b/up").c_str()), 0);
  ASSERT_OK_AND_ASSIGN(const std::string a, files_.Identity(Path("a")));
  EXPECT_EQ(files_.Identity(Path("a/b/up")).value(), a);
  EXPECT_EQ(files_.Identity(Path("a/b/..")).value(), a);
  EXPECT_NE(*files_.Identity(Path("a/b")), a);
  EXPECT_THAT(files_.Identity(Path("gone")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(FileSystemTest, Rename_ReplacesTheTarget) {
  WriteFile(Path("from"), "new");
  WriteFile(Path("to"), "old");
  ASSERT_OK(files_.Rename(Path("from"), Path("to")));
  EXPECT_EQ(files_.Read(Path("to")).value(), "new");
  EXPECT_FALSE(files_.Exists(Path("from")));
}

TEST_F(FileSystemTest, Exchange_SwapsTwoDirectories) {
  ASSERT_OK(files_.CreateDirectories(Path("left")));
  ASSERT_OK(files_.CreateDirectories(Path("right")));
  WriteFile(Path("left/f"), "of left");
  ASSERT_OK(files_.Exchange(Path("left"), Path("right")));
  EXPECT_EQ(files_.Read(Path("right/f")).value(), "of left");
  EXPECT_FALSE(files_.Exists(Path("left/f")));
  EXPECT_THAT(files_.Exchange(Path("left"), Path("gone")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Path("gone"))));
}

TEST_F(FileSystemTest, RemoveAll_TakesTheTreeButNotWhatLinksPointTo) {
  ASSERT_OK(files_.CreateDirectories(Path("outside")));
  WriteFile(Path("outside/kept"), "x");
  ASSERT_OK(files_.CreateDirectories(Path("tree/deep")));
  WriteFile(Path("tree/deep/f"), "x");
  ASSERT_EQ(symlink(Path("outside").c_str(), Path("tree/link").c_str()), 0);
  ASSERT_OK(files_.RemoveAll(Path("tree")));
  EXPECT_FALSE(files_.Exists(Path("tree")));
  EXPECT_TRUE(files_.Exists(Path("outside/kept")));
  EXPECT_OK(files_.RemoveAll(Path("tree")));
}

TEST_F(FileSystemTest, Map_GivesTheBytes) {
  WriteFile(Path("f"), "0123456789");
  ASSERT_OK_AND_ASSIGN(const MappedFile file, files_.Map(Path("f")));
  EXPECT_EQ(file.bytes(), "0123456789");
}

TEST_F(FileSystemTest, Lock_IsRefusedWithTheHoldersNameWhileHeld) {
  absl::StatusOr<std::unique_ptr<FileLock>> first = files_.Lock(Path("lock"));
  ASSERT_OK(first);
  EXPECT_THAT(files_.Lock(Path("lock")),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(Path("lock")), HasSubstr(absl::StrCat("process ", getpid(), " on host ")))));
  first->reset();
  EXPECT_OK(files_.Lock(Path("lock")));
}

TEST_F(FileSystemTest, Lock_OfAKilledProcessIsTakenOver) {
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<std::unique_ptr<FileLock>> lock = PosixFileSystem().Lock(Path("lock"));
    _exit(lock.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_THAT(files_.Read(Path("lock")).value(), HasSubstr(absl::StrCat("process ", child)));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileLock> lock, files_.Lock(Path("lock")));
  EXPECT_THAT(files_.Read(Path("lock")).value(), HasSubstr(absl::StrCat("process ", getpid())));
}

TEST_F(FileSystemTest, Lock_KnowsWhenItsFileIsGoneOrAnother) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileLock> lock, files_.Lock(Path("lock")));
  EXPECT_OK(lock->CheckHeld());
  ASSERT_OK(files_.RemoveFile(Path("lock")));
  EXPECT_THAT(lock->CheckHeld(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is gone")));
  WriteFile(Path("lock"), "");
  EXPECT_THAT(lock->CheckHeld(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is another file")));
}

TEST_F(FileSystemTest, Lock_DoesNotFollowALink) {
  WriteFile(Path("precious"), "x");
  ASSERT_EQ(symlink(Path("precious").c_str(), Path("lock").c_str()), 0);
  EXPECT_FALSE(files_.Lock(Path("lock")).ok());
  EXPECT_EQ(files_.Read(Path("precious")).value(), "x");
}

TEST(ParentDirectoryTest, Parents_OfAllKindsOfPaths) {
  EXPECT_EQ(ParentDirectory("a/b"), "a");
  EXPECT_EQ(ParentDirectory("a/b/"), "a");
  EXPECT_EQ(ParentDirectory("/a/b"), "/a");
  EXPECT_EQ(ParentDirectory("/b"), "/");
  EXPECT_EQ(ParentDirectory("/"), "/");
  EXPECT_EQ(ParentDirectory("b"), ".");
  EXPECT_EQ(ParentDirectory(""), ".");
  EXPECT_EQ(ParentDirectory("a//b"), "a");
}

TEST(ErrnoStatusTest, Codes_TellWhatAUserCanDo) {
  const std::vector<std::pair<int, absl::StatusCode>> cases = {
      {ENOSPC, absl::StatusCode::kResourceExhausted},
      {EDQUOT, absl::StatusCode::kResourceExhausted},
      {EFBIG, absl::StatusCode::kResourceExhausted},
      {EACCES, absl::StatusCode::kPermissionDenied},
      {EROFS, absl::StatusCode::kPermissionDenied},
      {ENOENT, absl::StatusCode::kNotFound},
      {EIO, absl::StatusCode::kDataLoss},
      {EEXIST, absl::StatusCode::kAlreadyExists},
  };
  for (const auto& [error, code] : cases) {
    EXPECT_THAT(ErrnoStatus(error, "writing", "/a/b"),
                StatusIs(code, AllOf(HasSubstr("file /a/b: writing failed: "),
                                     HasSubstr(absl::StrCat("(errno ", error, ")")))));
  }
}

}  // namespace
}  // namespace ssl
