// SPDX-License-Identifier: Apache-2.0

#include "ssl/testing/temp_dir.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(TempDirTest, EachCall_GivesAnotherEmptyDirectory) {
  const std::string first = MakeTempDir("case");
  const std::string second = MakeTempDir("case");
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::filesystem::is_directory(first));
  EXPECT_TRUE(std::filesystem::is_empty(second));
  EXPECT_EQ(std::filesystem::path(first).filename().string().rfind("case_", 0), 0u);
}

}  // namespace
}  // namespace ssl
