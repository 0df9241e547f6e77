// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_files.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Row i of layer "a" is [i, i + 0.5], of layer "b" a 1x2 picture of it; the label is i % 3.
FeatureBatch BatchOf(const std::vector<int64_t>& indices) {
  const at::Tensor positions = at::tensor(indices, at::kLong);
  const at::Tensor column = positions.to(at::kFloat).unsqueeze(1);
  const at::Tensor rows = at::cat({column, column.add(0.5)}, 1);
  return {{rows, rows.unsqueeze(1)}, positions.remainder(3), positions};
}

class FeatureFilesTest : public ::testing::Test {
 protected:
  void Write(int64_t rank, int64_t chunk_threshold, const std::vector<std::vector<int64_t>>& batches) {
    FeatureFileWriter writer({directory_, "train", rank, {"a", "b"}, chunk_threshold}, PosixFileSystem());
    for (const std::vector<int64_t>& batch : batches) ASSERT_OK(writer.Add(BatchOf(batch)));
    ASSERT_OK(writer.Finish());
  }

  absl::StatusOr<FeatureSet> Load(const std::string& layer) {
    return LoadFeatures(directory_, "train", layer, PosixFileSystem());
  }

  std::vector<std::string> Files() { return PosixFileSystem().List(directory_).value(); }

  std::vector<int64_t> ShapeOf(const std::string& file) {
    return ReadNpy(absl::StrCat(directory_, "/", file)).value().shape;
  }

  // Layer "a" of the samples 0 ... n - 1 in their order.
  static void ExpectComplete(const FeatureSet& set, int64_t samples) {
    EXPECT_TRUE(at::equal(set.indices, at::arange(samples, at::kLong)));
    EXPECT_TRUE(at::equal(set.labels, at::arange(samples, at::kLong).remainder(3)));
    EXPECT_TRUE(at::equal(set.features.at(0).select(1, 1), at::arange(samples, at::kFloat).add(0.5)));
  }

  const std::string directory_ = MakeTempDir("features");
};

TEST_F(FeatureFilesTest, OneChunk_HasVisslsNamesAndShapes) {
  Write(0, -1, {{0, 1, 2}, {3, 4}});
  EXPECT_THAT(Files(), ElementsAre("rank0_chunk0_train_a_features.npy", "rank0_chunk0_train_a_inds.npy",
                                   "rank0_chunk0_train_a_targets.npy", "rank0_chunk0_train_b_features.npy",
                                   "rank0_chunk0_train_b_inds.npy", "rank0_chunk0_train_b_targets.npy"));
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_a_features.npy"), ElementsAre(5, 2));
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_b_features.npy"), ElementsAre(5, 1, 2));
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_a_targets.npy"), ElementsAre(5, 1));
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_a_inds.npy"), ElementsAre(5));
  EXPECT_EQ(ReadNpy(directory_ + "/rank0_chunk0_train_a_features.npy")->dtype, NpyDtype::kFloat32);
  EXPECT_EQ(ReadNpy(directory_ + "/rank0_chunk0_train_a_targets.npy")->dtype, NpyDtype::kInt64);
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("a"));
  ExpectComplete(set, 5);
}

TEST_F(FeatureFilesTest, Chunks_AreWrittenWhenFullAndMerged) {
  Write(0, 4, {{0, 1, 2}, {3, 4}, {5, 6}});
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_a_features.npy"), ElementsAre(5, 2));
  EXPECT_THAT(ShapeOf("rank0_chunk1_train_a_features.npy"), ElementsAre(2, 2));
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("a"));
  ExpectComplete(set, 7);
}

TEST_F(FeatureFilesTest, ThresholdZero_WritesEachBatchAndNoEmptyChunk) {
  Write(0, 0, {{0, 1}, {2, 3}});
  EXPECT_EQ(Files().size(), 12u);
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("b"));
  EXPECT_EQ(set.features[0].sizes(), at::IntArrayRef({4, 1, 2}));
}

TEST_F(FeatureFilesTest, RanksWithRepeatedSamples_AreMergedByPosition) {
  Write(1, -1, {{1, 3, 5}, {0}});
  Write(0, -1, {{0, 2}, {4, 0}});
  EXPECT_THAT(ShapeOf("rank0_chunk0_train_a_features.npy"), ElementsAre(3, 2));
  EXPECT_THAT(NpyInts(*ReadNpy(directory_ + "/rank1_chunk0_train_a_inds.npy")).value(), ElementsAre(0, 1, 3, 5));
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("a"));
  ExpectComplete(set, 6);
}

TEST_F(FeatureFilesTest, VisslsFloat64_IsRead) {
  const std::string prefix = directory_ + "/rank0_chunk0_train_a_";
  ASSERT_OK(WriteNpy<double>(PosixFileSystem(), prefix + "features.npy", {2, 2}, {0.0, 0.5, 1.0, 1.5}));
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), prefix + "targets.npy", {2, 1}, {0, 1}));
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), prefix + "inds.npy", {2}, {0, 1}));
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("a"));
  ExpectComplete(set, 2);
}

TEST_F(FeatureFilesTest, SeveralLabelsOfASample_AreKept) {
  FeatureFileWriter writer({directory_, "train", 0, {"a", "b"}, -1}, PosixFileSystem());
  FeatureBatch batch = BatchOf({0, 1});
  batch.labels = at::arange(8, at::kLong).view({2, 4});
  ASSERT_OK(writer.Add(batch));
  ASSERT_OK(writer.Finish());
  ASSERT_OK_AND_ASSIGN(const FeatureSet set, Load("a"));
  EXPECT_TRUE(at::equal(set.labels, batch.labels));
}

TEST_F(FeatureFilesTest, SoftLabels_AreRefused) {
  FeatureFileWriter writer({directory_, "train", 0, {"a", "b"}, -1}, PosixFileSystem());
  FeatureBatch batch = BatchOf({0, 1});
  batch.labels = batch.features[0];
  EXPECT_THAT(writer.Add(batch), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weights of classes")));
}

TEST_F(FeatureFilesTest, MissingLayer_NamesThoseThatAreThere) {
  Write(0, -1, {{0, 1}});
  EXPECT_THAT(Load("c"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("layer 'c' of train; layers there: a, b")));
  EXPECT_THAT(FeatureFileLayers(directory_, "train", PosixFileSystem()).value(), ElementsAre("a", "b"));
  EXPECT_THAT(FeatureFileLayers(directory_, "test", PosixFileSystem()).value(), IsEmpty());
}

TEST_F(FeatureFilesTest, FilesThatDoNotFit_AreNamed) {
  Write(0, -1, {{0, 1, 2}});
  const std::string targets = directory_ + "/rank0_chunk0_train_a_targets.npy";
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), targets, {2, 1}, {0, 1}));
  EXPECT_THAT(Load("a"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shape is [2, 1], expected [3, 1]")));
  ASSERT_OK(PosixFileSystem().RemoveFile(targets));
  EXPECT_THAT(Load("a"), StatusIs(absl::StatusCode::kNotFound, HasSubstr(targets)));
}

TEST_F(FeatureFilesTest, Remove_LeavesOtherFilesAndSplits) {
  Write(0, 0, {{0}, {1}});
  Write(3, -1, {{2}});
  for (const char* other : {"notes.txt", "rank0_chunk0_test_a_features.npy", "rankX_chunk0_train_a_features.npy"}) {
    ASSERT_OK((*PosixFileSystem().Create(absl::StrCat(directory_, "/", other)))->Append("x"));
  }
  ASSERT_OK(RemoveFeatureFiles(directory_, "train", PosixFileSystem()));
  EXPECT_THAT(Files(),
              ElementsAre("notes.txt", "rank0_chunk0_test_a_features.npy", "rankX_chunk0_train_a_features.npy"));
}

TEST_F(FeatureFilesTest, Table_HasShapesAndTheSum) {
  FeatureFileWriter writer({directory_, "train", 0, {"a", "b"}, -1}, PosixFileSystem());
  ASSERT_OK(writer.Add(BatchOf({0, 1})));
  ASSERT_OK(writer.Finish());
  const std::string table = FormatArrayTable(directory_, writer.arrays());
  EXPECT_THAT(table, HasSubstr("rank0_chunk0_train_b_features.npy           [2, 1, 2]"));
  EXPECT_THAT(table, HasSubstr(directory_));
}

TEST(ClassNamesTest, OddNames_ComeBack_AndGoWithTheFiles) {
  const std::string directory = MakeTempDir("classes");
  const std::vector<std::string> names = {"1", "null", "two words", "quote\"and\\slash", "b\xc3\xa4r", ": - #"};
  ASSERT_OK(WriteClassNames(directory, "test", names, PosixFileSystem()));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> read, ReadClassNames(directory, "test", PosixFileSystem()));
  EXPECT_EQ(read, names);
  ASSERT_OK(RemoveFeatureFiles(directory, "train", PosixFileSystem()));
  EXPECT_TRUE(PosixFileSystem().Exists(directory + "/test_classes.json"));
  ASSERT_OK(RemoveFeatureFiles(directory, "test", PosixFileSystem()));
  EXPECT_FALSE(PosixFileSystem().Exists(directory + "/test_classes.json"));
}

TEST(ClassNamesTest, NoNames_AreNoFile) {
  const std::string directory = MakeTempDir("classes");
  ASSERT_OK(WriteClassNames(directory, "test", {}, PosixFileSystem()));
  EXPECT_TRUE(PosixFileSystem().List(directory)->empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> read, ReadClassNames(directory, "test", PosixFileSystem()));
  EXPECT_TRUE(read.empty());
}

TEST(ClassNamesTest, FileWithoutNames_IsNamed) {
  const std::string directory = MakeTempDir("classes");
  ASSERT_OK_AND_ASSIGN(const auto file, PosixFileSystem().Create(directory + "/train_classes.json"));
  ASSERT_OK(file->Append("{}"));
  ASSERT_OK(file->Close());
  EXPECT_THAT(ReadClassNames(directory, "train", PosixFileSystem()).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("train_classes.json holds no list of class names")));
}

}  // namespace
}  // namespace ssl
