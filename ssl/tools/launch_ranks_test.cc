// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_ranks.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two ranks of this very program, which do what the test of that name does as a rank.
absl::StatusOr<LaunchOutcome> LaunchTwo(const std::string& test, const std::string& directory) {
  const absl::StatusOr<std::unique_ptr<ThisProgram>> program = ThisProgram::Open();
  if (!program.ok()) return program.status();
  const absl::StatusOr<ConfigNode> root = ParseYaml(
      absl::StrCat("{engine_name: train, config: {CHECKPOINT: {DIR: ", directory, "}}}"), "run.yaml", nullptr);
  if (!root.ok()) return root.status();
  RunWorld world;
  world.launches = true;
  world.place.size = world.place.local_size = 2;
  const StopToken stop;
  return LaunchRanks(**program, world, *root, {absl::StrCat("--gtest_filter=", test)}, /*restarts=*/0, stop);
}

// As of a port that the ranks of the other start have taken, which lock the directory a moment later.
TEST(LaunchRanksTest, AMistakeOfRanks_IsThatTheirDirectoryIsInUse_WhereItIs) {
  if (std::getenv("RANK") != nullptr) _exit(kExitConfiguration);
  const std::string test = "LaunchRanksTest.AMistakeOfRanks_IsThatTheirDirectoryIsInUse_WhereItIs";
  const std::string directory = MakeTempDir("launch_ranks");
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileLock> held,
                         PosixFileSystem().Lock(absl::StrCat(directory, "/.lock")));
    EXPECT_THAT(LaunchTwo(test, directory),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(absl::StrCat("run directory ", directory, " cannot be used")),
                               HasSubstr(absl::StrCat("held by process ", getpid())))));
  }
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome alone, LaunchTwo(test, directory));
  EXPECT_EQ(alone.exit_code, kExitConfiguration);
}

}  // namespace
}  // namespace ssl
