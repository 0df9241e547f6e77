// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_dataset.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/sample.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void WriteFile(const std::string& path, const std::string& bytes) {
  const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  ASSERT_OK(file->Append(bytes));
  ASSERT_OK(file->Close());
}

// Pictures of 2 x 2 pixels: picture i holds the value `base` + i everywhere.
std::string Images(int count, int base) {
  std::string bytes("\0\0\x08\x03\0\0\0\0\0\0\0\x02\0\0\0\x02", 16);
  bytes[7] = static_cast<char>(count);
  for (int i = 0; i < count; ++i) bytes.append(4, static_cast<char>(base + i));
  return bytes;
}

// Labels 0 ... count - 1.
std::string Labels(int count) {
  std::string bytes("\0\0\x08\x01\0\0\0\0", 8);
  bytes[7] = static_cast<char>(count);
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

std::string FolderWithBothSplits() {
  const std::string folder = MakeTempDir("idx");
  WriteFile(folder + "/train-images-idx3-ubyte", Images(3, 100));
  WriteFile(folder + "/train-labels-idx1-ubyte", Labels(3));
  WriteFile(folder + "/t10k-images-idx3-ubyte", Images(2, 200));
  WriteFile(folder + "/t10k-labels-idx1-ubyte", Labels(2));
  return folder;
}

TEST(IdxDataset, Splits_AreTrainAndT10k) {
  const std::string folder = FolderWithBothSplits();
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
  WriteFile(folder + "/train-images-idx3-ubyte", Images(3, 100));
  EXPECT_THAT(ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/train-labels-idx1-ubyte.gz")));
}

TEST(IdxDataset, UnequalCounts_NameBothFilesAndNumbers) {
  const std::string folder = FolderWithBothSplits();
  WriteFile(folder + "/train-labels-idx1-ubyte", Labels(2));
  EXPECT_THAT(
      ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("/train-images-idx3-ubyte holds 3 pictures"),
                                                         HasSubstr("/train-labels-idx1-ubyte holds 2 labels"))));
}

TEST(IdxDataset, NoPictures_AreRefused) {
  const std::string folder = MakeTempDir("idx");
  WriteFile(folder + "/train-images-idx3-ubyte", Images(0, 0));
  WriteFile(folder + "/train-labels-idx1-ubyte", Labels(0));
  EXPECT_THAT(ReadIdxDataset(PosixFileSystem(), folder, IdxSplit::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds 0 pictures")));
}

}  // namespace
}  // namespace ssl
