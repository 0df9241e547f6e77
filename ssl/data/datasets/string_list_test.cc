// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/string_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteText(const std::string& text) {
  const std::string path = MakeTempDir("list") + "/list.txt";
  const auto file = PosixFileSystem().Create(path).value();
  EXPECT_OK(file->Append(text));
  EXPECT_OK(file->Close());
  return path;
}

TEST(StringList, Lines_EndWithOrWithoutReturn) {
  ASSERT_OK_AND_ASSIGN(const auto lines, ReadStringList(PosixFileSystem(), WriteText("a b\r\nc\n\xC3\xA4\n\r\n\n")));
  EXPECT_THAT(lines, ElementsAre("a b", "c", "\xC3\xA4"));
  ASSERT_OK_AND_ASSIGN(const auto marked, ReadStringList(PosixFileSystem(), WriteText("\xEF\xBB\xBF"
                                                                                      "a\nb\n")));
  EXPECT_THAT(marked, ElementsAre("a", "b")) << "as some editors save it";
  ASSERT_OK_AND_ASSIGN(const auto open_end, ReadStringList(PosixFileSystem(), WriteText("a\nb")));
  EXPECT_THAT(open_end, ElementsAre("a", "b"));
  ASSERT_OK_AND_ASSIGN(const auto empty, ReadStringList(PosixFileSystem(), WriteText("")));
  EXPECT_THAT(empty, ElementsAre());
}

TEST(StringList, LinesAcrossPieces_StayWhole) {
  std::string text;
  for (int i = 0; i < 400000; ++i) absl::StrAppend(&text, "line ", i, "\n");  // 4.7 MB
  ASSERT_OK_AND_ASSIGN(const auto lines, ReadStringList(PosixFileSystem(), WriteText(text)));
  ASSERT_EQ(lines.size(), 400000u);
  for (int i = 0; i < 400000; ++i) ASSERT_EQ(lines[i], absl::StrCat("line ", i));
}

TEST(StringList, WrongLines_AreNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ReadStringList(PosixFileSystem(), WriteText("a\n\n\nb\n")),
              StatusIs(invalid, HasSubstr("/list.txt:2: the line is empty")));
  EXPECT_THAT(ReadStringList(PosixFileSystem(), WriteText(std::string("a\nb\0c\n", 6))),
              StatusIs(invalid, HasSubstr("/list.txt:2: the line has a NUL byte")));
  EXPECT_THAT(ReadStringList(PosixFileSystem(), WriteText("a\n" + std::string(10000, 'x') + "\nb\n")),
              StatusIs(invalid, HasSubstr("/list.txt:2: the line is longer than 4096 bytes")));
  EXPECT_OK(ReadStringList(PosixFileSystem(), WriteText(std::string(4096, 'x'))));
}

TEST(StringList, FifoDeviceAndFolder_AreRefusedAtOnce) {
  const std::string folder = MakeTempDir("list");
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder + "/fifo", std::string("/dev/zero"), folder}) {
    EXPECT_THAT(ReadStringList(PosixFileSystem(), path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a regular file")));
  }
}

// A file of zeros that claims to be large: refused by its first piece.
TEST(StringList, HugeFileWithoutLines_IsRefusedByItsBeginning) {
  const std::string path = MakeTempDir("list") + "/list.txt";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, off_t{1} << 40), 0);
  close(fd);
  EXPECT_THAT(
      ReadStringList(PosixFileSystem(), path),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("list.txt:1: the line is longer than 4096 bytes")));
}

// Three pieces of a megabyte, a second each.
TEST(StringList, LongList_TellsHowFarItIs) {
  std::string text;
  for (int i = 0; i < 3 << 16; ++i) text.append("0123456789abcde\n");
  const std::string path = WriteText(text);
  ManualClock clock;
  int64_t lines = 0;
  const CapturedLog log;
  ASSERT_OK(ForEachLine(
      PosixFileSystem(), path,
      [&](absl::string_view) {
        if (++lines % (1 << 16) == 0) clock.Advance(absl::Seconds(1));
      },
      clock));
  EXPECT_THAT(log.lines, ElementsAre(absl::StrCat(path, ": 131072 lines (66%) so far")));
}

}  // namespace
}  // namespace ssl
