// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluateEngineTest : public MatrixRun {
 protected:
  void SetUp() override {
    MatrixRun::SetUp();
    Set("NEIGHBORS", "{NUM_QUERIES: 2, TOPK: 2, IMAGE_SIDE: 16, LAYERS: [all], BASELINES: []}");
    SaveRandomCheckpoint();
  }

  bool HasSheet() const { return PosixFileSystem().Exists(directory_ + "/neighbors.png"); }
};

TEST_F(EvaluateEngineTest, ImagesWithClasses_HaveAccuracyAndNeighbors) {
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("trained network"), HasSubstr("2 queries")));
  EXPECT_GT(Result("knn.trained"), 0.0);
  EXPECT_TRUE(HasSheet());
}

TEST_F(EvaluateEngineTest, ImagesWithoutClasses_HaveNeighbors) {
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "0");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("2 queries"), Not(HasSubstr("kNN"))));
  EXPECT_TRUE(HasSheet());
}

TEST_F(EvaluateEngineTest, OneClass_IsNoneToCompare) {
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "1");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "1");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, Not(HasSubstr("kNN")));
}

TEST_F(EvaluateEngineTest, Stop_EndsBoth) {
  stop_at_call_ = 1;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(HasSheet());
}

}  // namespace
}  // namespace ssl
