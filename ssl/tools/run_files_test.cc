// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_files.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

TEST(RunFilesTest, EnvironmentNamesTheDirectory) {
  const std::string directory = MakeTempDir("run_files");
  setenv("RUNFILES_DIR", directory.c_str(), 1);
  EXPECT_EQ(RunFilesDirectory("program"), directory);
}

TEST(RunFilesTest, DirectoryBesideTheProgramIsFound) {
  const std::string folder = MakeTempDir("run_files");
  std::filesystem::create_directory(folder + "/program.runfiles");
  setenv("RUNFILES_DIR", "", 1);
  EXPECT_EQ(RunFilesDirectory(folder + "/program"), folder + "/program.runfiles");
}

}  // namespace
}  // namespace ssl
