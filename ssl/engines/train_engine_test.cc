// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/simclr_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A training of one epoch.
class TrainEngineTest : public SimclrRun {
 protected:
  void SetUp() override {
    SimclrRun::SetUp();
    Set("OPTIMIZER.num_epochs", "1");
    Set("TEST_MODEL", "False");
  }

  absl::StatusOr<EngineReport> Train() { return RunEngine("train"); }
};

TEST_F(TrainEngineTest, BrokenImages_AreAmongTheResults) {
  ASSERT_OK(Train());
  EXPECT_EQ(results_.Find("broken_images"), nullptr);
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), directory_ + "/broken_images.json",
                                "{\"by_kind\": {\"damaged\": 3, \"of another format\": 2, \"over a limit\": 1, "
                                "\"missing\": 5, \"unreadable\": 4}}"));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Train());
  EXPECT_EQ(results_.FindPath("broken_images.total")->text(), "15");
  EXPECT_THAT(report.summary, HasSubstr(" of training; of the run's images 15 could not be read"));
}

// Cut off by a full disk, or another program's: the training is done all the same.
TEST_F(TrainEngineTest, FileOfBrokenImagesThatIsDamaged_IsSetAside) {
  ASSERT_OK(Train());
  const std::string path = directory_ + "/broken_images.json";
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, "{\"by_kind\""));
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Train());
  EXPECT_THAT(report.summary, HasSubstr("finished at iteration 3 of 3"));
  EXPECT_THAT(log.Text(), AllOf(HasSubstr(path + ": has no number"), HasSubstr(path + ".damaged")));
  EXPECT_FALSE(PosixFileSystem().Exists(path));
  EXPECT_EQ(PosixFileSystem().Read(path + ".damaged").value(), "{\"by_kind\"");
}

}  // namespace
}  // namespace ssl
