// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/dataset_builder.h"

#include <errno.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Data source "grey": 12 images of one pixel, whose value is the index; class: index modulo 3.
// Data source "plain": the same without classes.
class DatasetBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const bool labelled : {true, false}) {
      ASSERT_OK(registries_.datasets.Register(
          labelled ? "grey" : "plain",
          [labelled](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<Dataset>> {
            ImageArray array;
            array.count = 12;
            array.height = array.width = 1;
            for (int64_t i = 0; i < 12; ++i) {
              array.pixels.push_back(static_cast<uint8_t>(i));
              if (labelled) array.labels.push_back(i % 3);
            }
            return ArrayDataset::Create(std::move(array), "twelve images");
          }));
    }
  }

  // Builds from the lines below TRAIN, of which the first is line 3 of run.yaml.
  absl::StatusOr<std::unique_ptr<Dataset>> Build(const std::string& split) {
    config_ = ParseYaml(absl::StrCat("DATA:\n  TRAIN:\n", split), "run.yaml", nullptr).value();
    return BuildDataset(*config_.FindPath("DATA.TRAIN"), {config_, registries_, *local_});
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> local_ = MakeLocalCommunicator();
};

// The first pixels of all images.
std::vector<int> PixelsOf(const Dataset& dataset) {
  std::vector<int> pixels;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    EXPECT_OK(dataset.Get(i, &sample));
    pixels.push_back(sample.view(0).image.pixels()[0]);
  }
  return pixels;
}

std::vector<int64_t> LabelsOf(const Dataset& dataset) {
  std::vector<int64_t> labels;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    EXPECT_OK(dataset.Get(i, &sample));
    EXPECT_EQ(sample.label, dataset.Label(i));
    labels.push_back(sample.label);
  }
  return labels;
}

std::string WriteInts(const std::vector<int64_t>& shape, const std::vector<int64_t>& values,
                      const std::string& name = "labels.npy") {
  const std::string path = MakeTempDir("labels") + "/" + name;
  EXPECT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, shape, values));
  return path;
}

// The last `broken` of `count` are no images.
void WriteImages(const std::string& folder, int count, int broken) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(folder));
  Image image;
  std::fill_n(image.Allocate(4, 4, 3), 48, uint8_t{90});
  const std::string png = EncodePng(image).value();
  for (int i = 0; i < count; ++i) {
    const std::string path = absl::StrCat(folder, "/", 100 + i, ".png");
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, i < count - broken ? png : "no image"));
  }
}

TEST_F(DatasetBuilderTest, NoLabelSource_KeepsTheLabelsOfTheData) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, Build("    DATA_SOURCES: [grey]\n"));
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
  ASSERT_OK_AND_ASSIGN(const auto same, Build("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [grey]\n"));
  EXPECT_EQ(LabelsOf(*same), LabelsOf(*dataset));
}

TEST_F(DatasetBuilderTest, LabelFile_ReplacesTheLabelsOfTheData) {
  const std::string path = WriteInts({12}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 11});
  ASSERT_OK_AND_ASSIGN(const auto dataset, Build(absl::StrCat("    DATA_SOURCES: [grey]\n    LABEL_PATHS: [", path,
                                                              "]\n    LABEL_SOURCES: [disk_filelist]\n")));
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 11));
}

TEST_F(DatasetBuilderTest, LabelMatrix_GivesRows) {
  std::vector<int64_t> values(24, 0);
  values[3] = 1;
  const std::string path = WriteInts({12, 2}, values);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Build(absl::StrCat("    DATA_SOURCES: [grey]\n    LABEL_PATHS: [", path,
                                                              "]\n    LABEL_SOURCES: [disk_filelist]\n")));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(1, &sample));
  EXPECT_THAT(sample.label_row, ElementsAre(0, 1));
  EXPECT_EQ(sample.view(0).image.pixels()[0], 1);
}

// A column of class numbers that are 0 and 1 is no different.
TEST_F(DatasetBuilderTest, LabelMatrixOfOneColumn_IsSaidToBeOneClass) {
  const CapturedLog log;
  EXPECT_OK(
      Build(absl::StrCat("    DATA_SOURCES: [grey]\n    LABEL_PATHS: [",
                         WriteInts({12, 1}, std::vector<int64_t>(12, 1)), "]\n    LABEL_SOURCES: [disk_filelist]\n")));
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("[12, 1]"), HasSubstr("labels[:, 0]")));
}

TEST_F(DatasetBuilderTest, ListOfLabelFiles_GivesEachSampleALabelOfEach) {
  const std::string first = WriteInts({12}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 11});
  const std::string second = WriteInts({12}, std::vector<int64_t>(12, 2));
  const std::string source = "    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: ";
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Build(absl::StrCat(source, "[[", first, ", ", second, "]]\n    DATA_LIMIT: 11\n")));
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset->size(); ++i) {
    ASSERT_OK(dataset->Get(i, &sample));
    const int64_t image = sample.view(0).image.pixels()[0];
    EXPECT_THAT(sample.label_list, ElementsAre(image < 10 ? 9 - image : image, 2));
    EXPECT_EQ(dataset->LabelList(i), sample.label_list);
  }
  EXPECT_THAT(
      Build(absl::StrCat(source, "[", first, ", ", second, "]\n")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS has 2 entries, expected one, as DATA_SOURCES "
                         "has one; [[a.npy, b.npy]] gives each sample a label of each file")));
  EXPECT_THAT(Build(absl::StrCat(source, "[[", first, ", no.npy]]\n")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS: ")));
}

TEST_F(DatasetBuilderTest, LabelPathsThatAreNone_AreNamed) {
  const std::string source = "    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: ";
  for (const char* paths : {"[{a: b}]", "[[]]", "[[a, [b]]]", "[[a, '']]"}) {
    EXPECT_THAT(Build(absl::StrCat(source, paths, "\n")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS has "),
                               HasSubstr("expected a path or a list of paths for each of DATA_SOURCES"))))
        << paths;
  }
}

TEST_F(DatasetBuilderTest, SeveralSources_MayEachHaveAListOfLabelFiles) {
  const std::string ones = WriteInts({12}, std::vector<int64_t>(12, 1));
  const std::string twos = WriteInts({12}, std::vector<int64_t>(12, 2));
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Build(absl::StrCat("    DATA_SOURCES: [grey, plain]\n    LABEL_SOURCES: [disk_filelist, disk_filelist]\n"
                         "    DATASET_NAMES: []\n    LABEL_PATHS: [[",
                         ones, ", ", twos, "], ", twos, "]\n")));
  EXPECT_THAT(dataset->LabelList(11), ElementsAre(1, 2));
  EXPECT_EQ(dataset->Label(12), 2);
}

TEST_F(DatasetBuilderTest, LabelFileOfAKnownDataSet_HasVisslsName) {
  const std::string path = WriteInts({12}, std::vector<int64_t>(12, 5), "train_labels.npy");
  registries_.dataset_folders["flowers"] = ParentDirectory(path);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Build("    DATA_SOURCES: [plain]\n    LABEL_SOURCES: [disk_filelist]\n"
                                                 "    DATASET_NAMES: [flowers]\n"));
  EXPECT_EQ(LabelsOf(*dataset), std::vector<int64_t>(12, 5));
}

TEST_F(DatasetBuilderTest, OtherCountOfLabels_NamesKeyFileAndNumbers) {
  const std::string path = WriteInts({11}, std::vector<int64_t>(11, 0));
  EXPECT_THAT(Build(absl::StrCat("    DATA_SOURCES: [grey]\n    LABEL_PATHS: [", path,
                                 "]\n    LABEL_SOURCES: [disk_filelist]\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat("run.yaml:4: config.DATA.TRAIN.LABEL_PATHS: ", path,
                                              " holds 11 labels, expected 12, the images of twelve images"))));
}

TEST_F(DatasetBuilderTest, WrongSources_AreNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Build("    DATA_SOURCES: []\n"),
              StatusIs(invalid, HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_SOURCES is [], expected one of grey, "
                                          "plain")));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [plain]\n"),
              StatusIs(invalid, HasSubstr("run.yaml:4: config.DATA.TRAIN.LABEL_SOURCES is [plain], expected nothing, "
                                          "[disk_filelist] or [grey] as DATA_SOURCES")));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: [no.npy]\n"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS: ")));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: []\n"),
              StatusIs(invalid, HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS is empty, expected the file with "
                                          "the labels, as LABEL_PATHS=[labels.npy]")));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n"),
              StatusIs(invalid, AllOf(HasSubstr("run.yaml:4: config.DATA.TRAIN.LABEL_SOURCES is [disk_filelist]: "),
                                      HasSubstr("config.DATA.TRAIN.LABEL_PATHS is empty"))));
}

// Who names a file of labels is not left with others, or none, without a word.
TEST_F(DatasetBuilderTest, LabelPathsThatNothingReads_AreRefused) {
  const std::string unread =
      "is [labels.npy], but LABEL_SOURCES is empty, so that nothing reads it; expected "
      "LABEL_SOURCES=[disk_filelist]";
  EXPECT_THAT(Build("    DATA_SOURCES: [plain]\n    LABEL_PATHS: [labels.npy]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat("run.yaml:4: config.DATA.TRAIN.LABEL_PATHS ", unread))));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey, plain]\n    DATASET_NAMES: []\n    LABEL_PATHS: [labels.npy, x]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(unread)));
}

TEST_F(DatasetBuilderTest, SeveralSources_FollowOneAnotherWithTheirOwnLabels) {
  const std::string path = WriteInts({12}, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4});
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Build(absl::StrCat("    DATA_SOURCES: [grey, plain]\n    LABEL_SOURCES: [grey, disk_filelist]\n"
                                          "    DATASET_NAMES: []\n    LABEL_PATHS: [unused, ",
                                          path, "]\n")));
  EXPECT_EQ(dataset->size(), 24);
  EXPECT_EQ(dataset->description(), "twelve images + twelve images");
  EXPECT_EQ(PixelsOf(*dataset)[13], 1);
  const std::vector<int64_t> labels = LabelsOf(*dataset);
  EXPECT_EQ(labels[1], 1);
  EXPECT_EQ(labels[12], 5);
  EXPECT_EQ(labels[23], 4);
  ASSERT_OK_AND_ASSIGN(const auto limited, Build("    DATA_SOURCES: [grey, plain]\n    DATA_LIMIT: 20\n"
                                                 "    DATASET_NAMES: []\n"));
  EXPECT_EQ(limited->size(), 20);
  EXPECT_FALSE(limited->has_labels()) << "plain has none";
}

// Who needs labels asks for them (ssl/core/label_check.h).
TEST_F(DatasetBuilderTest, SeveralSourcesWithLabelsOfTwoKinds_HaveNone) {
  const std::string names = MakeTempDir("labels") + "/names.txt";
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), names, absl::StrJoin(std::vector<std::string>(12, "cat"), "\n")));
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Build(absl::StrCat("    DATA_SOURCES: [grey, plain]\n    LABEL_SOURCES: [grey, disk_filelist]\n"
                                          "    DATASET_NAMES: []\n    LABEL_PATHS: [unused, ",
                                          names, "]\n")));
  EXPECT_EQ(dataset->size(), 24);
  EXPECT_FALSE(dataset->has_labels());
  EXPECT_THAT(log.Text(), HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_SOURCES: the images have no labels together: "
                                    "classes of twelve images have names and those of twelve images are numbers"));
}

// Three of twenty would be too many of the second source by itself.
TEST_F(DatasetBuilderTest, SeveralSources_HaveOneCountOfBrokenImages) {
  ASSERT_OK(registries_.datasets.Register("disk_folder", MakeDiskFolder));
  const std::string root = MakeTempDir("images");
  WriteImages(root + "/a/class", 60, 0);
  WriteImages(root + "/b/class", 20, 3);
  const std::string sources =
      absl::StrCat("    DATA_SOURCES: [disk_folder, disk_folder]\n    DATA_PATHS: [", root, "/a, ", root, "/b]\n");
  const std::string labels = absl::StrCat("    LABEL_SOURCES: [disk_filelist, disk_filelist]\n    LABEL_PATHS: [",
                                          WriteInts({60}, std::vector<int64_t>(60, 4)), ", ",
                                          WriteInts({20}, std::vector<int64_t>(20, 5)), "]\n");
  for (const std::string& split : {sources, sources + labels}) {
    const CapturedLog log;
    {
      ASSERT_OK_AND_ASSIGN(const auto dataset, Build(split));
      Sample sample;
      for (int64_t i = 79; i >= 0; --i) {
        sample.ResetViews(1);
        EXPECT_OK(dataset->Get(i, &sample)) << i;
      }
    }
    ASSERT_FALSE(log.lines.empty());
    EXPECT_EQ(log.lines.back(),
              "this process tried 80 images of config.DATA.TRAIN, 3 of which cannot be read: 3 not an image");
  }
}

// Of 25 images of 80, seven may be, with a margin for chance.
TEST_F(DatasetBuilderTest, SeveralSourcesOfWhichAPartIsRead_AreJudgedByItsSize) {
  ASSERT_OK(registries_.datasets.Register("disk_folder", MakeDiskFolder));
  const std::string root = MakeTempDir("images");
  WriteImages(root + "/a/class", 60, 7);
  WriteImages(root + "/b/class", 20, 1);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Build(absl::StrCat("    DATA_SOURCES: [disk_folder, disk_folder]\n",
                                                              "    DATA_PATHS: [", root, "/a, ", root, "/b]\n")));
  dataset->WillRead(25);
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 53; i < 60; ++i) EXPECT_OK(dataset->Get(i, &sample));
  EXPECT_THAT(dataset->Get(79, &sample),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("MAX_BROKEN_FRACTION allows a share of 0.1 of the first 25, 7 with a margin")));
}

// The last eight of a hundred cannot be read: three of ten that are drawn may be among them, all ten not.
TEST_F(DatasetBuilderTest, SomeOfADataSet_AreJudgedWithAMarginForChance) {
  ASSERT_OK(registries_.datasets.Register("disk_folder", MakeDiskFolder));
  const std::string root = MakeTempDir("images");
  WriteImages(root + "/class", 100, 8);
  const auto read = [&](std::vector<int64_t> positions) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> whole,
                         Build(absl::StrCat("    DATA_SOURCES: [disk_folder]\n    DATA_PATHS: [", root, "]\n")));
    const SubsetDataset some(std::move(whole), std::move(positions));
    Sample sample;
    sample.ResetViews(1);
    for (int64_t i = 0; i < some.size(); ++i) SSL_RETURN_IF_ERROR(some.Get(i, &sample));
    return absl::OkStatus();
  };
  EXPECT_OK(read({4, 99, 17, 93, 98, 55, 34, 72, 8, 61}));
  EXPECT_THAT(read({4, 99, 17, 93, 98, 55, 34, 92, 8, 61}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("4 of the first 8 images cannot be read, but config.DATA.TRAIN.MAX_BROKEN_FRACTION "
                                 "allows a share of 0.1 of the first 10, 3 with a margin for chance; ")));
}

TEST_F(DatasetBuilderTest, ListsOfSeveralSources_HaveAnEntryForEach) {
  EXPECT_THAT(Build("    DATA_SOURCES: [grey, plain]\n    DATA_PATHS: [a]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:4: config.DATA.TRAIN.DATA_PATHS has 1 entries, expected 2, one for each of "
                                 "DATA_SOURCES")));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey, plain]\n    DATASET_NAMES: [a, b, c]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TRAIN.DATASET_NAMES has 3 entries")));
  EXPECT_OK(Build("    DATA_SOURCES: [grey, plain]\n    DATASET_NAMES: [one]\n    DATA_PATHS: [a, b]\n"));
  EXPECT_THAT(Build("    DATA_SOURCES: [grey, plain]\n    LABEL_SOURCES: [grey, disk_filelist]\n"
                    "    LABEL_PATHS: [x, no.npy]\n"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run.yaml:5: config.DATA.TRAIN.LABEL_PATHS: ")));
}

TEST_F(DatasetBuilderTest, Catalog_SaysWhereADataSetLies) {
  const std::string labels = WriteInts({12}, {7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::string catalog = labels + ".catalog.json";
  const std::string text =
      absl::StrCat("{\"my_set\": {\"train\": [\"/images\", \"", labels, "\"], \"val\": [\"<img_path>\"]}}");
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), catalog, text));
  const auto build = [&](const std::string& lines) {
    return Build(absl::StrCat("    DATA_SOURCES: [grey]\n    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: []\n",
                              lines, "  DATASET_CATALOG: ", catalog, "\n"));
  };
  ASSERT_OK_AND_ASSIGN(const auto dataset, build("    DATASET_NAMES: [my_set]\n"));
  EXPECT_EQ(dataset->Label(0), 7);
  EXPECT_THAT(build("    DATASET_NAMES: [my_set]\n    SPLIT: test\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat("config.DATA.DATASET_CATALOG: ", catalog,
                                              ":1: data set 'my_set' has no paths [images, labels] for val"))));
  EXPECT_THAT(build("    DATASET_NAMES: [other]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no folder is known for DATASET_NAMES [other]"),
                             HasSubstr(absl::StrCat("or one of the names in ", catalog, ": my_set")))));
}

TEST_F(DatasetBuilderTest, DataThatMayNotBeRead_AreAMistakeOfTheConfiguration) {
  ASSERT_OK(registries_.datasets.Register(
      "locked", [](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<Dataset>> {
        return ErrnoStatus(EACCES, "listing", "photos/ant");
      }));
  const absl::Status status = Build("    DATA_SOURCES: [locked]\n").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("photos/ant: listing failed")));
  EXPECT_EQ(DetailOf(status, kDetailErrno), absl::StrCat(EACCES));
}

}  // namespace
}  // namespace ssl
