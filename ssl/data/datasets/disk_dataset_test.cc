// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/disk_dataset.h"

#include <errno.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/png_of_16_bits.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string EncodedImage(const std::string& name) {
  const std::string path = absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                                        "/ssl/data/testdata/decode/images/", name);
  return PosixFileSystem().Read(path).value();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
  const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  ASSERT_OK(file->Append(bytes));
  ASSERT_OK(file->Close());
}

// Two classes: cat has a JPEG and a PNG, dog has a file that is no image and a PNG.
std::string MakeFolder() {
  const std::string folder = MakeTempDir("disk");
  WriteFile(folder + "/cat/1.jpg", EncodedImage("rgb_q90.jpg"));
  WriteFile(folder + "/cat/2.png", EncodedImage("rgb.png"));
  WriteFile(folder + "/dog/1.jpg", "no image");
  WriteFile(folder + "/dog/2.png", EncodedImage("gray.png"));
  return folder;
}

using Maker = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const ConfigNode&, const BuildContext&);

// Builds the data set of DATA.TRAIN, with `folders` as Registries::dataset_folders.
absl::StatusOr<std::unique_ptr<Dataset>> Make(Maker maker, const std::string& split,
                                              std::map<std::string, std::string> folders = {}) {
  const ConfigNode config = ParseYaml(absl::StrCat("DATA:\n  TRAIN:\n", split), "run.yaml", nullptr).value();
  Registries registries;
  registries.dataset_folders = std::move(folders);
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return maker(*config.FindPath("DATA.TRAIN"), {config, registries, *communicator});
}

std::string PixelsOf(const Dataset& dataset, int64_t index, int64_t label) {
  Sample sample;
  sample.ResetViews(1);
  EXPECT_OK(dataset.Get(index, &sample));
  EXPECT_EQ(sample.label, label);
  const Image& image = sample.view(0).image;
  EXPECT_EQ(image.channels(), 3);
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

TEST(DiskFolder, Images_HaveTheClassOfTheirFolder) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", MakeFolder(), "]\n",
                                                                             "    MAX_BROKEN_FRACTION: 0.5\n")));
  EXPECT_EQ(dataset->size(), 4);
  EXPECT_TRUE(dataset->has_labels());
  EXPECT_EQ(PixelsOf(*dataset, 0, 0).size(), 48u * 64 * 3);
  EXPECT_EQ(PixelsOf(*dataset, 1, 0).size(), 48u * 64 * 3);
  EXPECT_EQ(PixelsOf(*dataset, 3, 1).size(), 48u * 64 * 3);
  EXPECT_EQ(dataset->Label(3), 1);
  EXPECT_THAT(dataset->ClassNames(), testing::ElementsAre("cat", "dog"));
}

TEST(DiskFolder, GreyOf16Bits_IsReadAsTheKeySays) {
  const std::string folder = MakeTempDir("disk");
  WriteFile(folder + "/1.png", PngOf16Bits(1, {4095}));
  for (const auto& [key, value] : std::map<std::string, char>{
           {"", '\x0F'}, {"    GRAY_16_BIT: scale\n", '\x0F'}, {"    GRAY_16_BIT: clip\n", '\xFF'}}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset,
                         Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", folder, "]\n", key)));
    EXPECT_EQ(PixelsOf(*dataset, 0, -1), std::string(3, value)) << key;
  }
}

// Its parts would be the classes, of which one is the test set.
TEST(DiskFolder, RootOfADataSet_IsRefused) {
  const auto open = [](const std::string& root, const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) {
      WriteFile(absl::StrCat(root, "/", folder, "/1.png"), EncodedImage("rgb.png"));
    }
    return Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", root, "/]\n")).status();
  };
  const std::pair<const char*, const char*> parts[] = {
      {"train", "val"}, {"train", "test"}, {"Training", "Validation"}, {"train2017", "val2017"}, {"train", "valid"}};
  for (const auto& [train, test] : parts) {
    const std::string root = MakeTempDir("root");
    const absl::Status refused = open(root, {absl::StrCat(train, "/cat"), absl::StrCat(test, "/cat"), "annotations"});
    EXPECT_THAT(refused,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS: " + root + ": looks like the root"),
                               HasSubstr(absl::StrCat("TRAIN.DATA_PATHS=[", root, "/", train, "] and")),
                               HasSubstr(absl::StrCat("TEST.DATA_PATHS=[", root, "/", test, "];")))));
  }
  EXPECT_THAT(open(MakeTempDir("root"), {"train/cat", "train/dog"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("whose 2 folders would be classes")));
  for (const std::vector<std::string>& classes :
       {std::vector<std::string>{"train", "car"}, {"train"}, {"test", "val"}}) {
    EXPECT_OK(open(MakeTempDir("classes"), classes));
  }
}

TEST(DiskFolder, WhatAnotherSourceReads_IsAdvised) {
  const std::string folder = MakeTempDir("others");
  for (const char* name : {"x.tar", "x.npy", "x.txt", "x.tar.gz"}) WriteFile(absl::StrCat(folder, "/", name), "x");
  const auto advice = [&](Maker maker, const std::string& name) {
    return std::string(Make(maker, absl::StrCat("    DATA_PATHS: ['", folder, "/", name, "']\n")).status().message());
  };
  EXPECT_THAT(advice(MakeDiskFolder, "x.tar"), HasSubstr("; config.DATA.TRAIN.DATA_SOURCES=[tar_shards] reads tar"));
  EXPECT_THAT(advice(MakeDiskFolder, "x-{0..1}.tar"), HasSubstr("DATA_SOURCES=[tar_shards] reads tar"));
  EXPECT_THAT(advice(MakeDiskFolder, "x.npy"), HasSubstr("DATA_SOURCES=[npy_images] reads an array of images, and"));
  EXPECT_THAT(advice(MakeDiskFolder, "x.txt"), HasSubstr("DATA_SOURCES=[disk_filelist] reads a list of paths"));
  EXPECT_THAT(advice(MakeDiskFolder, "x.tar.gz"), HasSubstr("; unpack it"));
  EXPECT_THAT(advice(MakeDiskFilelist, ""), AllOf(HasSubstr(" is a folder, expected a regular file with one path a line"),
                                                  HasSubstr("DATA_SOURCES=[disk_folder] reads a folder")));
  EXPECT_THAT(advice(MakeDiskFilelist, "x.tar"), HasSubstr("DATA_SOURCES=[tar_shards] reads tar"));
}

TEST(DiskFolder, BrokenImage_BecomesGrey) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", MakeFolder(), "]\n",
                                                                             "    DEFAULT_GRAY_IMG_SIZE: 20\n",
                                                                             "    MAX_BROKEN_FRACTION: 0.5\n")));
  EXPECT_EQ(PixelsOf(*dataset, 2, 1), std::string(20 * 20 * 3, '\x80'));
  EXPECT_EQ(static_cast<const DiskDataset&>(*dataset).broken()->broken(), 1);
}

TEST(DiskFolder, BrokenImage_TellsItsFault) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", MakeFolder(), "]\n",
                                                                             "    MAX_BROKEN_FRACTION: 0.5\n")));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(1, &sample));
  EXPECT_EQ(sample.fault, ReadFault::kNone);
  ASSERT_OK(dataset->Get(2, &sample));
  EXPECT_EQ(sample.fault, ReadFault::kNotAnImage);
  EXPECT_THAT(dataset->SampleName(2), HasSubstr("/dog/1.jpg"));
}

TEST(DiskFolder, BrokenImage_IsAnErrorWhenAskedFor) {
  const std::string folder = MakeFolder();
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", folder, "]\n",
                                                                             "    BROKEN_IMAGES: error\n")));
  Sample sample;
  sample.ResetViews(1);
  EXPECT_OK(dataset->Get(1, &sample));
  EXPECT_THAT(dataset->Get(2, &sample),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("run.yaml:4: config.DATA.TRAIN.BROKEN_IMAGES is error"),
                             HasSubstr(folder + "/dog/1.jpg: image is neither JPEG, PNG nor WebP"))));
  ASSERT_OK(PosixFileSystem().RemoveFile(folder + "/dog/1.jpg"));
  EXPECT_THAT(dataset->Get(2, &sample), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("No such file"))) << "missing";
}

TEST(DiskFolder, TooManyBrokenImages_AreAnErrorWithPathAndReason) {
  const std::string folder = MakeFolder();
  WriteFile(folder + "/cat/1.jpg", "");
  ASSERT_OK_AND_ASSIGN(const auto dataset, Make(MakeDiskFolder, absl::StrCat("    DATA_PATHS: [", folder, "]\n",
                                                                             "    MAX_BROKEN_FRACTION: 0.1\n")));
  Sample sample;
  sample.ResetViews(1);
  EXPECT_OK(dataset->Get(0, &sample)) << "one";
  EXPECT_THAT(dataset->Get(2, &sample),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("run.yaml:4: config.DATA.TRAIN.MAX_BROKEN_FRACTION allows a share of 0.1"),
                             HasSubstr(folder + "/dog/1.jpg: image is neither JPEG, PNG nor WebP"))));
}

TEST(DiskFolder, KnownDataSet_HasAFolderForEachSplit) {
  const std::string base = MakeTempDir("imagenet");
  WriteFile(base + "/train/a/1.png", EncodedImage("rgb.png"));
  WriteFile(base + "/val/a/1.png", EncodedImage("rgb.png"));
  WriteFile(base + "/val/a/2.png", EncodedImage("rgb.png"));
  const std::map<std::string, std::string> folders = {{"imagenet1k_folder", base}};

  ASSERT_OK_AND_ASSIGN(const auto train, Make(MakeDiskFolder, "    DATASET_NAMES: [imagenet1k_folder]\n", folders));
  ASSERT_OK_AND_ASSIGN(const auto test, Make(MakeDiskFolder, "    SPLIT: test\n", folders));
  EXPECT_EQ(train->size(), 1);
  EXPECT_EQ(test->size(), 2);

  EXPECT_THAT(Make(MakeDiskFolder, "    SPLIT: test\n", {{"imagenet1k_folder", base + "/train"}}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("config.DATA.TRAIN.DATA_PATHS is empty and the folder of data set "
                                 "'imagenet1k_folder', " +
                                 base + "/train, has no val or test")));
}

TEST(DiskFolder, Paths_AreCheckedWithTheirKey) {
  EXPECT_THAT(Make(MakeDiskFolder, "    DATA_PATHS: [no/folder]\n"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS: there is no folder no/folder in /"),
                             HasSubstr(", expected one that holds a folder of images for each class"))));
  EXPECT_THAT(Make(MakeDiskFolder, "    DATA_PATHS: [a, b]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS is [a, b], expected one")));
  EXPECT_THAT(Make(MakeDiskFolder, "    DATASET_NAMES: []\n    DATA_PATHS: []\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:4: config.DATA.TRAIN.DATA_PATHS and DATASET_NAMES are empty")));
  EXPECT_THAT(Make(MakeDiskFolder, "    DATASET_NAMES: [places]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no folder is known for DATASET_NAMES [places]")));
}

TEST(DiskFolder, PathsThatYamlOrTheShellReadOtherwise_AreRefusedWithAWayOut) {
  const auto refused = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS"), HasSubstr(text)));
  };
  EXPECT_THAT(Make(MakeDiskFolder, "    DATA_PATHS: [a,b]\n").status(), refused("in quotes: ['a,b']"));
  EXPECT_THAT(Make(MakeDiskFolder, "    DATA_PATHS: [null]\n").status(), refused("in quotes: ['null']"));
  EXPECT_THAT(Make(MakeDiskFolder, "    DATA_PATHS: [~/photos]\n").status(),
              refused("~/photos', in which nothing replaces ~"));
}

TEST(DiskFolder, ScanGoesThroughTheFileSystemOfTheRun_AndEndsWithItsStop) {
  const std::string folder = MakeFolder();
  const ConfigNode config =
      ParseYaml(absl::StrCat("DATA: {TRAIN: {DATA_PATHS: ['", folder, "']}}"), "run.yaml", nullptr).value();
  const ConfigNode& split = *config.FindPath("DATA.TRAIN");
  const Registries registries;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  FaultFileSystem files(PosixFileSystem(), folder);
  files.set_fault_reads(true);
  StopToken stop;
  const BuildContext context = {config, registries, *communicator, 0, "", 0, files, &stop};
  ASSERT_OK(MakeDiskFolder(split, context));
  const int whole = files.calls();

  files.ActAtCall(whole + whole / 2, [&stop] { stop.Request(kStopTerminate); });
  EXPECT_THAT(MakeDiskFolder(split, context), StatusIs(absl::StatusCode::kCancelled, HasSubstr("was stopped at")));
  EXPECT_LT(files.calls(), 2 * whole);

  files.FailCall(files.calls() + 1, EIO, FaultFileSystem::Repeat::kFromThenOn);
  EXPECT_THAT(MakeDiskFolder(split, {config, registries, *communicator, 0, "", 0, files}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("run.yaml:1: config.DATA.TRAIN.DATA_PATHS: file ")));
}

TEST(DiskFilelist, Paths_AreThoseOfTheLines) {
  const std::string folder = MakeFolder();
  WriteFile(folder + "/list.txt", absl::StrCat(folder, "/cat/2.png\n/old/cat/1.jpg\n"));
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Make(MakeDiskFilelist,
           absl::StrCat("    DATA_PATHS: [", folder, "/list.txt]\n", "    REMOVE_IMG_PATH_PREFIX: /old\n",
                        "    NEW_IMG_PATH_PREFIX: ", folder, "\n", "    MAX_BROKEN_FRACTION: 0\n")));
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_FALSE(dataset->has_labels());
  EXPECT_EQ(PixelsOf(*dataset, 0, -1).size(), 48u * 64 * 3);
  EXPECT_EQ(PixelsOf(*dataset, 1, -1).size(), 48u * 64 * 3);
}

TEST(DiskFilelist, PrefixThatNoPathHas_IsAWarning) {
  const std::string folder = MakeFolder();
  WriteFile(folder + "/list.txt", "/old/cat/1.jpg\n/new/cat/2.png\n");
  const auto warnings = [&](const std::string& prefix) {
    const CapturedLog log;
    EXPECT_OK(Make(MakeDiskFilelist, absl::StrCat("    DATA_PATHS: [", folder, "/list.txt]\n",
                                                  "    REMOVE_IMG_PATH_PREFIX: ", prefix, "\n")));
    return log.Text();
  };
  EXPECT_THAT(
      warnings("/elsewhere"),
      HasSubstr(absl::StrCat("run.yaml:4: config.DATA.TRAIN.REMOVE_IMG_PATH_PREFIX is /elsewhere, but no path of ",
                             folder, "/list.txt begins so; the first is /old/cat/1.jpg")));
  EXPECT_EQ(warnings("/new"), "");
}

TEST(DiskFilelist, MissingImage_IsBroken) {
  const std::string folder = MakeTempDir("disk");
  WriteFile(folder + "/list.txt", folder + "/none.jpg\n");
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Make(MakeDiskFilelist, absl::StrCat("    DATA_PATHS: [", folder, "/list.txt]\n", "    MAX_BROKEN_FRACTION: 1\n",
                                          "    DEFAULT_GRAY_IMG_SIZE: 3\n")));
  EXPECT_EQ(PixelsOf(*dataset, 0, -1), std::string(3 * 3 * 3, '\x80'));
}

TEST(DiskFilelist, ListAndImages_AreReadThroughTheFileSystemOfTheRun) {
  const std::string folder = MakeFolder();
  WriteFile(folder + "/list.txt", absl::StrCat(folder, "/cat/2.png\n", folder, "/dog/2.png\n"));
  const ConfigNode config = ParseYaml(absl::StrCat("DATA: {TRAIN: {DATA_PATHS: ['", folder,
                                                   "/list.txt'], DEFAULT_GRAY_IMG_SIZE: 3, MAX_BROKEN_FRACTION: 1}}"),
                                      "run.yaml", nullptr)
                                .value();
  const Registries registries;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  FaultFileSystem files(PosixFileSystem(), folder);
  files.set_fault_reads(true);
  const BuildContext context = {config, registries, *communicator, 0, "", 0, files};
  ASSERT_OK_AND_ASSIGN(const auto dataset, MakeDiskFilelist(*config.FindPath("DATA.TRAIN"), context));
  EXPECT_GT(files.calls(), 0) << "the list";
  EXPECT_EQ(PixelsOf(*dataset, 0, -1).size(), 48u * 64 * 3);

  files.FailCall(files.calls() + 1, EIO, FaultFileSystem::Repeat::kFromThenOn);
  EXPECT_EQ(PixelsOf(*dataset, 1, -1), std::string(3 * 3 * 3, '\x80'));
  EXPECT_EQ(static_cast<const DiskDataset&>(*dataset).broken()->Summary(),
            "this process tried 2 images of config.DATA.TRAIN, 1 of which cannot be read: 1 unreadable");
  EXPECT_FALSE(MakeDiskFilelist(*config.FindPath("DATA.TRAIN"), context).ok());
}

TEST(DiskFilelist, PathsBelow_AreTheOnlyOnesThatAreOpened) {
  const std::string folder = MakeFolder();
  const std::string outside = MakeFolder() + "/cat/2.png";
  std::filesystem::create_symlink(outside, folder + "/link.png");
  WriteFile(folder + "/list.txt", absl::StrCat(folder, "/cat/2.png\n", folder, "/link.png\n", outside, "\n"));
  const std::string list = absl::StrCat("    DATA_PATHS: [", folder, "/list.txt]\n    MAX_BROKEN_FRACTION: 1\n",
                                        "    DEFAULT_GRAY_IMG_SIZE: 3\n");
  ASSERT_OK_AND_ASSIGN(const auto anywhere, Make(MakeDiskFilelist, list));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(PixelsOf(*anywhere, i, -1).size(), 48u * 64 * 3);
  ASSERT_OK_AND_ASSIGN(const auto below, Make(MakeDiskFilelist, absl::StrCat(list, "    PATHS_BELOW: ", folder, "\n")));
  EXPECT_EQ(PixelsOf(*below, 0, -1).size(), 48u * 64 * 3);
  for (const int64_t i : {1, 2}) EXPECT_EQ(PixelsOf(*below, i, -1), std::string(3 * 3 * 3, '\x80'));
  EXPECT_EQ(static_cast<const DiskDataset&>(*below).broken()->Summary(),
            "this process tried 3 images of config.DATA.TRAIN, 2 of which cannot be read: 2 unreadable");
  EXPECT_THAT(Make(MakeDiskFilelist, absl::StrCat(list, "    PATHS_BELOW: no/folder\n")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run.yaml:6: config.DATA.TRAIN.PATHS_BELOW: ")));
}

TEST(DiskFilelist, EmptyOrMissingList_IsRefused) {
  const std::string folder = MakeTempDir("disk");
  WriteFile(folder + "/list.txt", "\n");
  EXPECT_THAT(Make(MakeDiskFilelist, absl::StrCat("    DATA_PATHS: [", folder, "/list.txt]\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS: " + folder + "/list.txt lists no images")));
  EXPECT_THAT(Make(MakeDiskFilelist, "    DATA_PATHS: [no/list.npy]\n"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run.yaml:3: config.DATA.TRAIN.DATA_PATHS: ")));
}

}  // namespace
}  // namespace ssl
