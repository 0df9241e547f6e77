// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/run_files.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAreArray;

const std::vector<std::string>& Engines() {
  static const auto* engines = new std::vector<std::string>{"extract_features", "full_tune", "knn", "train"};
  return *engines;
}

TEST(RunFiles, WhatEvaluationsWriteIsKnown) {
  for (const std::string& name :
       {KnnFile("res4+res5avg", "predictions"), KnnFile("res5", "image_indices"),
        PredictionFile(0, "test", "heads_1", "conf_scores"), PredictionFile(12, "train", "heads", "inds"),
        NeighborsSheet("trained"), NeighborsSheet("untrained"), std::string(kNeighborsFile), CommandConfigFile("knn"),
        CommandConfigFile("extract_features_knn"), CommandFailureFile("knn_full_tune")}) {
    EXPECT_TRUE(IsEvaluationFile(name, Engines())) << name;
  }
}

TEST(RunFiles, WhatOthersWriteIsNot) {
  for (const std::string& name :
       {CommandConfigFile(kTrainCommand), CommandFailureFile(kTrainCommand), std::string("my_config.yaml"),
        std::string("knn_my_config.yaml"), std::string("_config.yaml"), std::string("train_knn_config.yaml"),
        std::string("kNN_notes.npy"), std::string("ranks_test_heads_targets.npy"),
        std::string("rank0_val_heads_inds.npy"), std::string("log.txt"), std::string("preview.png"),
        std::string("data_check.json"), std::string("neighbors_of_mine.png"), std::string("results.json.old")}) {
    EXPECT_FALSE(IsEvaluationFile(name, Engines())) << name;
  }
}

TEST(RunFiles, RemovalLeavesAllElse) {
  const std::string run = MakeTempDir("run_files");
  const std::vector<std::string> others = {"checkpoints/x", "export/model.pth", "knn.txt", "log.txt",
                                           "train_config.yaml"};
  std::vector<std::string> files = {"features/rank0_chunk0_test_res5_inds.npy",
                                    "full_tune/log.txt",
                                    "kNN_res5_output_targets.npy",
                                    "knn_config.yaml",
                                    "knn_failure.json",
                                    "rank0_chunk0_train_res5_features.npy",
                                    "rank0_test_heads_targets.npy",
                                    "test_classes.json"};
  files.insert(files.end(), others.begin(), others.end());
  FileSystem& file_system = PosixFileSystem();
  for (const std::string& file : files) {
    const std::string path = absl::StrCat(run, "/", file);
    ASSERT_OK(file_system.CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(file_system, path, "x"));
  }

  ASSERT_OK(RemoveEvaluationFiles(run, Engines(), file_system));

  EXPECT_THAT(file_system.List(run).value(),
              ElementsAreArray({"checkpoints", "export", "knn.txt", "log.txt", "train_config.yaml"}));
  EXPECT_TRUE(file_system.Exists(run + "/export/model.pth"));
}

// Whoever has moved a run away wants no new directory in its place.
TEST(RunFiles, ADirectoryThatIsGone_IsNotMadeAnew) {
  const std::string run = MakeTempDir("gone") + "/run";
  EXPECT_THAT(WriteEvaluationFile(run, kPreviewFile, "x", PosixFileSystem()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::AllOf(::testing::HasSubstr(run), ::testing::HasSubstr("removed or moved away"))));
  EXPECT_FALSE(PosixFileSystem().Exists(run));
}

TEST(RunFiles, WhatAKilledProcessLeft_IsRemoved) {
  const std::string directory = MakeTempDir("unfinished");
  const std::string array = PredictionFile(0, "test", "heads", "predictions");
  const std::string gone = ".tmp-999999999";  // above the largest number of a process
  const std::string ours = absl::StrCat(array, ".tmp-", getpid());
  for (const std::string& name : {array, array + gone, KnnFile("res5", "targets") + gone, ours, "mine.npy" + gone}) {
    ASSERT_OK(WriteFileDurably(PosixFileSystem(), absl::StrCat(directory, "/", name), "x"));
  }
  ASSERT_OK(RemoveUnfinishedFiles(directory, PosixFileSystem()));
  EXPECT_THAT(*PosixFileSystem().List(directory), ::testing::UnorderedElementsAre(array, ours, "mine.npy" + gone));
}

}  // namespace
}  // namespace ssl
