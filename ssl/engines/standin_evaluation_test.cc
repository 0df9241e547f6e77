// SPDX-License-Identifier: Apache-2.0
//
// Evaluations compute on the device of MACHINE.DEVICE and find what they find on the CPU; the device is the stand-in
// of the tests (docs/devices.md).
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::Contains;
using testing::Gt;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kBatch[] = "copy to the device of Float [16, 1, 8, 8]";

class StandinEvaluationTest : public MatrixRun {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }
  void SetUp() override {
    MatrixRun::SetUp();
    SaveRandomCheckpoint();
    for (const char* const section : {"EXTRACT_FEATURES", "NEIGHBORS"}) Set(absl::StrCat(section, ".LAYERS"), "[all]");
  }

  // What an engine says, computing on `device`.
  absl::StatusOr<std::string> Summary(const std::string& engine, const std::string& device) {
    Restart();
    Set("MACHINE.DEVICE", device);
    SSL_ASSIGN_OR_RETURN(const EngineReport report, Run(engine));
    return report.summary;
  }

  std::string Features() const {
    return PosixFileSystem().Read(directory_ + "/features/rank0_chunk0_train_all_features.npy").value_or("");
  }
};

TEST_F(StandinEvaluationTest, FiguresAreThoseOfTheCpu) {
  for (const char* const engine : {"knn", "linear_eval", "neighbors", "extract_label_predictions"}) {
    SCOPED_TRACE(engine);
    ASSERT_OK_AND_ASSIGN(const std::string expected, Summary(engine, "cpu"));
    const TransferLog log;
    ASSERT_OK_AND_ASSIGN(const std::string found, Summary(engine, "gpu"));
    EXPECT_EQ(found, expected);
    EXPECT_THAT(log.uploads(), Contains(Pair(kBatch, Gt(0)))) << "it has computed on the CPU";
  }
}

TEST_F(StandinEvaluationTest, ExtractedFeaturesAreThoseOfTheCpu) {
  ASSERT_OK(Summary("extract_features", "cpu").status());
  const std::string expected = Features();
  EXPECT_THAT(expected, Not(IsEmpty()));
  const TransferLog log;
  ASSERT_OK(Summary("extract_features", "gpu").status());
  EXPECT_EQ(Features(), expected);
  EXPECT_THAT(log.uploads(), Contains(Pair(kBatch, Gt(0)))) << "it has computed on the CPU";
}

}  // namespace
}  // namespace ssl
