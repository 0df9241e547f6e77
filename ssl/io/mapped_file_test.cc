// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/mapped_file.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::string WriteTempFile(absl::string_view bytes) {
  const std::string path = MakeTempDir("mapped") + "/f";
  std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  EXPECT_OK(file->Append(bytes));
  EXPECT_OK(file->Close());
  return path;
}

TEST(MappedFileTest, Bytes_AreTheFile) {
  const std::string bytes(100'000, 'q');
  ASSERT_OK_AND_ASSIGN(const MappedFile file, MappedFile::Open(WriteTempFile(bytes)));
  EXPECT_TRUE(file.bytes() == bytes);
}

TEST(MappedFileTest, EmptyFile_HasEmptyBytes) {
  ASSERT_OK_AND_ASSIGN(const MappedFile file, MappedFile::Open(WriteTempFile("")));
  EXPECT_TRUE(file.bytes().empty());
}

TEST(MappedFileTest, Move_TakesTheBytesAlong) {
  ASSERT_OK_AND_ASSIGN(MappedFile first, MappedFile::Open(WriteTempFile("first")));
  ASSERT_OK_AND_ASSIGN(MappedFile second, MappedFile::Open(WriteTempFile("second")));
  second = std::move(first);
  const MappedFile third(std::move(second));
  EXPECT_EQ(third.bytes(), "first");
}

TEST(MappedFileTest, MissingFileAndDirectory_NameThePath) {
  const std::string dir = MakeTempDir("mapped");
  EXPECT_THAT(MappedFile::Open(dir + "/gone"), StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir + "/gone")));
  EXPECT_THAT(MappedFile::Open(dir),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a regular file")));
}

}  // namespace
}  // namespace ssl
