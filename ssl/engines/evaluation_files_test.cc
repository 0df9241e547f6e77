// SPDX-License-Identifier: Apache-2.0
//
// Files that belong together, of evaluations whose writing fails half-way: the earlier ones, the new ones, or none that
// could be taken for either.
#include <cerrno>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

class EvaluationFilesTest : public MatrixRun {};

// Predictions of one network beside targets of another data set.
TEST_F(EvaluationFilesTest, LabelPredictions_FullDiskAtAnyCall_MixesNoSets) {
  SaveRandomCheckpoint();
  int call = 1;
  for (bool failed = true; failed; ++call) {
    Set("DATA.TEST.DATA_LIMIT", "16");
    ASSERT_OK(Run("extract_label_predictions").status());
    Set("DATA.TEST.DATA_LIMIT", "20");
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    file_system_ = &files;
    Run("extract_label_predictions").status().IgnoreError();
    file_system_ = &PosixFileSystem();
    failed = files.failed_calls() > 0;
    std::set<int64_t> rows;
    for (const char* kind : {"predictions", "conf_scores", "targets", "inds"}) {
      const std::string path = absl::StrCat(directory_, "/rank0_test_heads_", kind, ".npy");
      if (PosixFileSystem().Exists(path)) rows.insert(ReadNpy(path)->shape[0]);
    }
    EXPECT_LE(rows.size(), 1) << "call " << call;
  }
  EXPECT_GT(call, 10);
}

TEST_F(EvaluationFilesTest, Knn_FullDiskAtAnyCall_MixesNoPredictions) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.SAVE_PREDICTIONS", "True");
  Set("NEAREST_NEIGHBOR.LAYERS", "[all]");
  int call = 1;
  for (bool failed = true; failed; ++call) {
    Set("DATA.TEST.DATA_LIMIT", "16");
    ASSERT_OK(Run("knn").status());
    Set("DATA.TEST.DATA_LIMIT", "20");
    FaultFileSystem files(PosixFileSystem(), directory_);
    files.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    file_system_ = &files;
    Run("knn").status().IgnoreError();
    file_system_ = &PosixFileSystem();
    failed = files.failed_calls() > 0;
    std::set<int64_t> rows;
    for (const char* kind : {"predictions", "targets", "image_indices"}) {
      const std::string path = absl::StrCat(directory_, "/kNN_all_output_", kind, ".npy");
      if (PosixFileSystem().Exists(path)) rows.insert(ReadNpy(path)->shape[0]);
    }
    EXPECT_LE(rows.size(), 1) << "call " << call;
  }
  EXPECT_GT(call, 10);
}

}  // namespace
}  // namespace ssl
