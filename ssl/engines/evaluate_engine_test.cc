// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
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

  // Sets what is typed: it counts before what the run was trained with.
  void Type(const std::string& path, const std::string& yaml) {
    config_.SetPath(path, ParseYaml(yaml, "command line", nullptr).value());
  }

  bool HasSheet() const { return PosixFileSystem().Exists(directory_ + "/neighbors.png"); }
};

TEST_F(EvaluateEngineTest, ImagesWithClasses_HaveAccuracyAndNeighbors) {
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("trained network"), HasSubstr("2 queries")));
  EXPECT_GT(Result("knn.trained"), 0.0);
  EXPECT_TRUE(HasSheet());
}

// Whatever layers and weights kNN has looked at before.
TEST_F(EvaluateEngineTest, Neighbors_AreThoseOfNeighborsAlone) {
  ASSERT_OK(Run("neighbors"));
  const double alone = Result("neighbors.trained");
  Restart();
  Set("NEAREST_NEIGHBOR.LAYERS", "['all:1']");
  ASSERT_OK(Run("evaluate"));
  EXPECT_EQ(Result("neighbors.trained"), alone);
}

TEST_F(EvaluateEngineTest, EngineThatRunsAgain_LooksAtTheWeightsOfThen) {
  const BuildContext build{config_, registries_, *communicator_, 3, directory_, 0, *file_system_};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, registries_.engines.Make("evaluate", config_, build));
  EngineContext first = Context();
  ASSERT_OK(engine->Run(first));
  SaveCheckpoint(at::ones({64, 4}), /*iteration=*/8);
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");  // no kNN
  EngineContext second = Context();
  ASSERT_OK(engine->Run(second));
  const double again = Result("neighbors.trained");
  Restart();
  ASSERT_OK(Run("neighbors"));
  EXPECT_EQ(again, Result("neighbors.trained"));
}

TEST_F(EvaluateEngineTest, ImagesWithoutClasses_HaveNeighbors) {
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "0");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("2 queries"), Not(HasSubstr("kNN"))));
  EXPECT_TRUE(HasSheet());
}

TEST_F(EvaluateEngineTest, TestImagesWithoutClasses_HaveNeighbors) {
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("2 queries"), Not(HasSubstr("kNN"))));
  EXPECT_THAT(log.Text(), HasSubstr("the test images ("));
  EXPECT_TRUE(HasSheet());
}

TEST_F(EvaluateEngineTest, OneClass_IsNoneToCompare) {
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "1");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "1");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, Not(HasSubstr("kNN")));
}

// Nothing of a class is left to compare with once its only image is held out.
TEST_F(EvaluateEngineTest, OneImageOfEachClass_IsNoneToCompare) {
  for (int i = 0; i < 4; ++i) {
    Image image;
    std::fill_n(image.Allocate(8, 8, 1), 64, static_cast<uint8_t>(60 * i));
    const std::string path = absl::StrCat(directory_, "/photos/class", i, "/0.png");
    ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, EncodePng(image).value()));
  }
  Set("DATA.TRAIN.DATA_SOURCES", "[disk_folder]");
  Set("DATA.TRAIN.DATA_PATHS", absl::StrCat("[", directory_, "/photos]"));
  Set("DATA.TRAIN.DATA_LIMIT", "-1");
  Type("DATA.TRAIN.TRANSFORMS", "[{name: Grayscale}, {name: ToTensor}, {name: Normalize, mean: [0.5], std: [0.25]}]");
  Set("DATA.TEST", "{SPLIT: test, TRANSFORMS: []}");
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("1 query, 2 neighbours each"), Not(HasSubstr("kNN"))));
  EXPECT_TRUE(HasSheet());
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            AllOf(HasSubstr("/photos"), HasSubstr("without a sample in"))));
}

TEST_F(EvaluateEngineTest, TestSet_IsToldOnce) {
  Set("DATA.TEST", "{SPLIT: test, TRANSFORMS: []}");
  Type("DATA.TRAIN.TRANSFORMS", "[{name: ToTensor}, {name: Normalize, mean: [0.5], std: [0.25]}]");
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  const CapturedLog log;
  ASSERT_OK(Run("evaluate"));
  const std::vector<std::string> parts = absl::StrSplit(log.Text(), "evaluation: the test set is ");
  EXPECT_EQ(parts.size(), 2u) << log.Text();
}

TEST_F(EvaluateEngineTest, SheetsThatFail_LeaveTheAccuracies) {
  fail_at_call_ = 9;  // of the sheets: the accuracies take seven
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_THAT(report.verdict, StatusIs(absl::StatusCode::kInternal, HasSubstr("call 9 fails")));
  EXPECT_THAT(report.summary, HasSubstr("trained network"));
  EXPECT_GT(Result("knn.trained"), 0.0);
  EXPECT_FALSE(HasSheet());
}

TEST_F(EvaluateEngineTest, Stop_EndsBoth) {
  stop_at_call_ = 1;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("evaluate"));
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(HasSheet());
}

}  // namespace
}  // namespace ssl
