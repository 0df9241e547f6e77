// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/read_file.h"

#include <sys/stat.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Whether the machine's own file system is asked, or one around it.
class ReadFilePartTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path_, "0123456789")); }

  absl::StatusOr<std::string> Read(const std::string& path, const FilePart& part = {}) {
    std::string text = "reused";
    const auto memory_for = [&text](int64_t size) -> absl::StatusOr<char*> {
      if (size > 100) return absl::ResourceExhaustedError("too large");
      text.resize(size);
      return text.data();
    };
    FileSystem& file_system = GetParam() ? PosixFileSystem() : around_;
    const absl::Status status = ReadFilePart(file_system, path, part, memory_for);
    if (!status.ok()) return status;
    return text;
  }

  const std::string folder_ = MakeTempDir("read_file");
  const std::string path_ = folder_ + "/file";
  FaultFileSystem around_{PosixFileSystem(), folder_};
};

TEST_P(ReadFilePartTest, GivesThePart) {
  EXPECT_EQ(Read(path_).value(), "0123456789");
  EXPECT_EQ(Read(path_, {3, 2}).value(), "34");
  EXPECT_EQ(Read(path_, {3, -1}).value(), "3456789");
  EXPECT_EQ(Read(path_, {3, 0}).value(), "");
}

TEST_P(ReadFilePartTest, ErrorsAreThoseOfTheFileSystem) {
  EXPECT_THAT(Read(folder_ + "/gone"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/gone")));
  EXPECT_THAT(Read(folder_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a directory")));
  EXPECT_THAT(Read(path_, {8, 3}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("/file: ends after 10 bytes")));
  EXPECT_THAT(Read(path_, {0, 101}), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("too large")));
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Read(folder_ + "/pipe"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a device or pipe")));
}

INSTANTIATE_TEST_SUITE_P(FileSystems, ReadFilePartTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Machine" : "Other"; });

}  // namespace
}  // namespace ssl
