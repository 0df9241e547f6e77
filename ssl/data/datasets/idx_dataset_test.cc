// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_dataset.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/testing/idx_files.h"
#include "ssl/data/sample.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void WriteFile(const std::string& path, const std::string& bytes) {
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
}

TEST(IdxDataset, Splits_AreTrainAndT10k) {
  const std::string folder = MakeIdxFolder();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> train,
                       ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> test, ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTest));
  Sample sample;
  sample.ResetViews(1);

  EXPECT_EQ(train->size(), 3);
  ASSERT_OK(train->Get(2, &sample));
  EXPECT_EQ(sample.view(0).image.pixels()[3], 102);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(test->size(), 2);
  ASSERT_OK(test->Get(1, &sample));
  EXPECT_EQ(sample.view(0).image.pixels()[0], 201);
  EXPECT_TRUE(test->has_labels());
}

TEST(IdxDataset, MissingFile_NamesBothSpellingsAndTheKey) {
  const std::string folder = MakeTempDir("idx");
  EXPECT_THAT(ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr(folder + "/train-images-idx3-ubyte.gz nor " +
                                                                    folder + "/train-images-idx3-ubyte exists"),
                                                          HasSubstr("set DATA_PATHS"))));
  WriteFile(folder + "/train-images-idx3-ubyte", IdxImages(3, 100));
  EXPECT_THAT(ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/train-labels-idx1-ubyte.gz")));
}

TEST(IdxDataset, UnequalCounts_NameBothFilesAndNumbers) {
  const std::string folder = MakeIdxFolder();
  WriteFile(folder + "/train-labels-idx1-ubyte", IdxLabels(2));
  EXPECT_THAT(
      ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("/train-images-idx3-ubyte holds 3 images"),
                                                         HasSubstr("/train-labels-idx1-ubyte holds 2 labels"))));
}

TEST(IdxDataset, NoImages_AreRefused) {
  const std::string folder = MakeTempDir("idx");
  WriteFile(folder + "/train-images-idx3-ubyte", IdxImages(0, 0));
  WriteFile(folder + "/train-labels-idx1-ubyte", IdxLabels(0));
  EXPECT_THAT(ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds 0 images")));
}

}  // namespace
}  // namespace ssl
