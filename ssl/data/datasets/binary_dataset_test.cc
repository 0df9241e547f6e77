// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/binary_dataset.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
  const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  ASSERT_OK(file->Append(bytes));
  ASSERT_OK(file->Close());
}

// The byte of plane c at position i of image `number`.
uint8_t Value(int number, int c, int i) { return static_cast<uint8_t>(31 * number + 7 * c + 3 * i + i / 32); }

std::string Planes(int number, int side) {
  std::string planes;
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < side * side; ++i) planes.push_back(static_cast<char>(Value(number, c, i)));
  }
  return planes;
}

// One image with that label byte, after `before`.
std::string Record(int number, char label, const std::string& before = "") {
  return before + std::string(1, label) + Planes(number, 32);
}

std::string Cifar10Folder() {
  const std::string folder = MakeTempDir("cifar");
  for (int i = 1; i <= 5; ++i) {
    const auto label = static_cast<char>(i);
    WriteFile(absl::StrCat(folder, "/cifar-10-batches-bin/data_batch_", i, ".bin"),
              Record(2 * i, label) + Record(2 * i + 1, 0));
  }
  WriteFile(folder + "/cifar-10-batches-bin/test_batch.bin", Record(50, 9));
  return folder;
}

TEST(Cifar10, Batches_FollowEachOther) {
  const std::string folder = Cifar10Folder();
  ASSERT_OK_AND_ASSIGN(const auto train, ReadCifar10(PosixFileSystem(), folder, /*test=*/false));
  ASSERT_OK_AND_ASSIGN(const auto test, ReadCifar10(PosixFileSystem(), folder + "/cifar-10-batches-bin", true));
  Sample sample;
  sample.ResetViews(1);

  EXPECT_EQ(train->size(), 10);
  EXPECT_EQ(test->size(), 1);
  ASSERT_OK(train->Get(4, &sample));  // the first of batch 3
  EXPECT_EQ(sample.label, 3);
  const Image& image = sample.view(0).image;
  ASSERT_EQ(image.size_bytes(), 32 * 32 * 3);
  for (int i = 0; i < 32 * 32; ++i) {
    for (int c = 0; c < 3; ++c) ASSERT_EQ(image.pixels()[3 * i + c], Value(6, c, i));
  }
  ASSERT_OK(test->Get(0, &sample));
  EXPECT_EQ(sample.label, 9);
}

TEST(Cifar100, SecondLabel_IsTheClass) {
  const std::string folder = MakeTempDir("cifar");
  WriteFile(folder + "/train.bin", Record(0, 77, "\x05") + Record(1, 3, "\x06"));
  ASSERT_OK_AND_ASSIGN(const auto train, ReadCifar100(PosixFileSystem(), folder, /*test=*/false));
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(train->Label(0), 77);
  EXPECT_EQ(train->Label(1), 3);
}

TEST(Stl10, PlanesHoldColumns_AndLabelsStartAtOne) {
  const std::string folder = MakeTempDir("stl");
  WriteFile(folder + "/stl10_binary/test_X.bin", Planes(1, 96) + Planes(2, 96));
  WriteFile(folder + "/stl10_binary/test_y.bin", "\x0A\x01");
  ASSERT_OK_AND_ASSIGN(const auto test, ReadStl10(PosixFileSystem(), folder, /*test=*/true));
  Sample sample;
  sample.ResetViews(1);

  ASSERT_OK(test->Get(1, &sample));

  EXPECT_EQ(test->Label(0), 9);
  EXPECT_EQ(sample.label, 0);
  for (int y : {0, 1, 95}) {
    for (int x : {0, 2, 95}) EXPECT_EQ(sample.view(0).image.row(y)[3 * x + 1], Value(2, 1, x * 96 + y));
  }
}

TEST(BinaryDatasets, MissingFile_NamesBothPlaces) {
  const std::string folder = MakeTempDir("cifar");
  EXPECT_THAT(
      ReadCifar10(PosixFileSystem(), folder, false),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("neither " + folder + "/data_batch_1.bin nor " + folder +
                                                            "/cifar-10-batches-bin/data_batch_1.bin exists"),
                                                  HasSubstr("binary version"))));
}

TEST(BinaryDatasets, DamagedFiles_AreNamedWithNumbers) {
  const std::string folder = MakeTempDir("cifar");
  WriteFile(folder + "/test.bin", std::string(3075, '\0'));
  EXPECT_THAT(ReadCifar100(PosixFileSystem(), folder, true),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("has 3075 bytes, expected a multiple of 3074")));
  WriteFile(folder + "/test.bin", Record(0, 100, "\x01"));
  EXPECT_THAT(ReadCifar100(PosixFileSystem(), folder, true),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("label of image 0 is 100, expected one below 100")));
  WriteFile(folder + "/train_X.bin", Planes(0, 96));
  WriteFile(folder + "/train_y.bin", "\x01\x02");
  EXPECT_THAT(ReadStl10(PosixFileSystem(), folder, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("train_y.bin holds 2 labels for 1 images")));
  WriteFile(folder + "/train_y.bin", std::string(1, '\0'));
  EXPECT_THAT(ReadStl10(PosixFileSystem(), folder, false),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("label of image 0 is -1")));
}

}  // namespace
}  // namespace ssl
