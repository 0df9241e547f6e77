// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

class SweepTableTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    EXPECT_OK(WriteFileAtomically(PosixFileSystem(), absl::StrCat(directory_, "/", name), text));
  }
  std::string Row(const SweepOutcome& outcome) { return SweepRow(0, {{}, {"config.A=1"}}, outcome, PosixFileSystem()); }

  const std::string directory_ = MakeTempDir("sweep");
};

TEST_F(SweepTableTest, ARowHasTheLastLossAndTheFigures) {
  Write("metrics.json",
        "{\"iteration\":5,\"train_loss\":{\"mean\":3.5}}\n{\"iteration\":10,\"train_loss\":{\"mean\":2.25}}\n"
        "{\"iteration\":10,\"test_accuracy\":{\"top_1\":1}}\n");
  Write("results.json",
        "{\"train_seconds\": 12.5, \"knn\": {\"trained\": 0.975, \"weights\": \"x\", \"transforms\": [1]}}");
  EXPECT_EQ(Row({directory_, kExitFinished, ""}),
            "sweep_0   finished  config.A=1  loss=2.25 train_seconds=12.5 knn.trained=0.975\n");
  EXPECT_EQ(Row({directory_, kExitStopped, ""}), "sweep_0   stopped   config.A=1\n");
  EXPECT_EQ(Row({directory_, kExitFailed, "no weights"}), "sweep_0   failed    config.A=1  no weights\n");
}

TEST_F(SweepTableTest, RowsFitIntoATerminal) {
  std::string results;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&results, "\"linear_eval_", i, "\": {\"trained\": 0.123456},\n");
  Write("results.json", absl::StrCat("{", results, "\"last\": 1}"));
  const std::vector<std::string> lines = absl::StrSplit(Row({directory_, kExitFinished, ""}), '\n', absl::SkipEmpty());
  EXPECT_GT(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 120u) << line;
  EXPECT_THAT(lines[1], ::testing::StartsWith("                    linear_eval_"));
  EXPECT_THAT(lines.back(), ::testing::EndsWith("(9 more in results.json)"));
}

}  // namespace
}  // namespace ssl
