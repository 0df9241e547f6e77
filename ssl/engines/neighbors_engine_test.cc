// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/image.h"
#include "ssl/data/sample.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/engines/testing/watched_images.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NeighborsEngineTest : public MatrixRun {
 protected:
  void SetUp() override {
    MatrixRun::SetUp();
    Set("NEIGHBORS", "{NUM_QUERIES: 4, TOPK: 3, IMAGE_SIDE: 24, LAYERS: [all], BASELINES: [untrained]}");
  }

  Image Sheet(const std::string& name) {
    Image sheet;
    EXPECT_OK(DecodeImage(PosixFileSystem().Read(absl::StrCat(directory_, "/", name)).value(), {}, &sheet));
    return sheet;
  }

  ConfigNode Written() { return ReadResults(directory_ + "/neighbors.json", PosixFileSystem()).value(); }
};

TEST_F(NeighborsEngineTest, OneNeighbour_IsCountedAsOne) {
  SaveRandomCheckpoint();
  Set("NEIGHBORS.TOPK", "1");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("neighbors"));
  EXPECT_THAT(report.summary, HasSubstr("4 queries, 1 neighbour each"));
}

TEST_F(NeighborsEngineTest, EachQueryHasItsNearest) {
  SaveRandomCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("neighbors"));
  EXPECT_THAT(report.summary, AllOf(HasSubstr("untrained"), HasSubstr("4 queries, 3 neighbours each")));
  const ConfigNode written = Written();
  for (const char* network : {"untrained", "trained"}) {
    const ConfigNode& queries = *written.Find(network);
    ASSERT_EQ(queries.items().size(), 4u);
    for (const ConfigNode& query : queries.items()) {
      double before = 0.0;
      for (const ConfigNode& neighbor : query.Find("neighbors")->items()) {
        EXPECT_GE(neighbor.Find("distance")->AsDouble().value(), before);
        before = neighbor.Find("distance")->AsDouble().value();
      }
      EXPECT_LE(before, 2.0);
    }
  }
  // 20 test images: every fifth.
  EXPECT_EQ(written.FindPath("trained.1.query")->text(), "image 5");
  EXPECT_GE(Result("neighbors.trained"), 0.0);
  EXPECT_EQ(results_.FindPath("neighbors.weights")->text(), "checkpoint of iteration 7");
}

// The network sees one pixel of 64: those whose pixel has the same sign are at distance 0, all others at 2.
TEST_F(NeighborsEngineTest, Distances_AreOfTheCosine) {
  at::Tensor weight = at::zeros({64, 4});
  weight[9][0] = 1.0;
  SaveCheckpoint(weight);
  Set("NEIGHBORS.TOPK", "64");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("neighbors"));
  for (const ConfigNode& neighbor : Written().FindPath("trained.0.neighbors")->items()) {
    const double distance = neighbor.Find("distance")->AsDouble().value();
    EXPECT_FALSE(std::signbit(distance)) << distance;
    EXPECT_TRUE(std::abs(distance) < 1e-5 || std::abs(distance - 2.0) < 1e-5) << distance;
  }
  EXPECT_THAT(report.summary, Not(HasSubstr("-0.0")));
  EXPECT_EQ(Written().FindPath("trained.0.neighbors")->items().size(), 60u) << "all of the training set";
}

TEST_F(NeighborsEngineTest, Sheets_HaveARowForEachQuery) {
  SaveRandomCheckpoint();
  ASSERT_OK(Run("neighbors"));
  const int row = 24 + 2 * (2 + 7) + 4;  // distances are below the names
  EXPECT_EQ(Sheet("neighbors.png").height(), 4 * row + 4);
  EXPECT_EQ(Sheet("neighbors_untrained.png").height(), 4 * row + 4);
}

TEST_F(NeighborsEngineTest, DataWithoutLabels_AreEnough) {
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "0");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  SaveRandomCheckpoint();
  ASSERT_OK(Run("neighbors"));
}

TEST_F(NeighborsEngineTest, WithoutWeights_SaysHowToGetThem) {
  EXPECT_THAT(Run("neighbors").status(),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("no trained weights"), HasSubstr("PARAMS_FILE"))));
}

TEST_F(NeighborsEngineTest, StopWhileSheetsAreDrawn_LeavesNothing) {
  int whole_images = 0;
  ASSERT_OK(registries_.datasets.Register("watched", [&](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Dataset>>(
        std::make_unique<WatchedImages>(60, 8, 1, stop_.get(), &whole_images));
  }));
  for (const char* split : {"TRAIN", "TEST"}) Set(absl::StrCat("DATA.", split, ".DATA_SOURCES"), "[watched]");
  SaveRandomCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("neighbors"));
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(whole_images, 1);
  for (const char* file : {"neighbors.png", "neighbors_untrained.png", "neighbors.json"}) {
    EXPECT_FALSE(PosixFileSystem().Exists(absl::StrCat(directory_, "/", file))) << file;
  }
}

TEST_F(NeighborsEngineTest, Stop_LeavesNothing) {
  SaveRandomCheckpoint();
  stop_at_call_ = 2;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("neighbors"));
  EXPECT_TRUE(report.stopped);
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/neighbors.json"));
}

}  // namespace
}  // namespace ssl
