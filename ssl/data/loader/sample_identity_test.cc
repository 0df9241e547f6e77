// SPDX-License-Identifier: Apache-2.0
//
// What sources say of their samples, by which ranks compare their data: the same on every host that has the same data,
// wherever they lie. Whole sources from a configuration, over real files.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/testing/idx_files.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::MatchesRegex;

using Texts = std::vector<std::string>;

void Write(const std::string& path, const std::string& bytes) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(path.substr(0, path.rfind('/'))));
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
}

// A new folder with one grey image for each of `names`.
std::string FolderOf(const Texts& names) {
  Image image;
  std::fill_n(image.Allocate(4, 4, 1), 16, uint8_t{7});
  const std::string folder = MakeTempDir("identity");
  for (const std::string& name : names) Write(absl::StrCat(folder, "/", name), EncodePng(image).value());
  return folder;
}

// Of each sample of DATA.TEST with these keys.
Texts Identities(const std::string& keys, const std::string& transforms = "") {
  Registries registries;
  EXPECT_OK(RegisterData(&registries));
  ConfigNode config = registries.options.Defaults();
  const std::string split = absl::StrCat("DATA: {TEST: {BATCHSIZE_PER_REPLICA: 1, TRANSFORMS: [{name: ToTensor}",
                                         transforms, "], ", keys, "}, NUM_DATALOADER_WORKERS: 0}");
  MergeInto(&config, ParseYaml(split, "run.yaml", nullptr).value());
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const auto source = registries.batch_sources.Make("generic_ssl", *config.FindPath("DATA.TEST"),
                                                    {config, registries, *communicator, /*seed=*/4});
  EXPECT_OK(source);
  Texts identities;
  for (int64_t i = 0; source.ok() && i < (*source)->dataset_size(); ++i) {
    identities.push_back((*source)->SampleIdentity(i));
  }
  return identities;
}

Texts OfFolder(const Texts& names, const std::string& more = "") {
  return Identities(absl::StrCat("DATA_SOURCES: [disk_folder], DATA_PATHS: ['", FolderOf(names), "']", more));
}

TEST(SampleIdentity, OfAFolder_IsBelowIt) {
  const Texts names = {"ant/0.png", "ant/x/1.png", "bee/2.png"};
  for (int host = 0; host < 2; ++host) {
    EXPECT_THAT(OfFolder(names), ElementsAre("ant/0.png, class 0", "ant/x/1.png, class 0", "bee/2.png, class 1"));
  }
  EXPECT_THAT(OfFolder({"0.png", "1.png"}), ElementsAre("0.png", "1.png")) << "without classes";
}

// As LABEL_TYPE sample_index, with which labels are not the data's.
TEST(SampleIdentity, LabelsThatAreMade_AreNoPartOfIt) {
  EXPECT_THAT(OfFolder({"ant/0.png", "bee/1.png"}, ", LABEL_TYPE: sample_index"),
              ElementsAre("ant/0.png", "bee/1.png"));
}

TEST(SampleIdentity, OfAList_IsBelowTheFolderThatAllShare) {
  const Texts names = {"ant/0.png", "ant/1.png", "ape/2.png"};
  for (int host = 0; host < 2; ++host) {
    const std::string folder = FolderOf(names);
    Texts paths;
    for (const std::string& name : names) paths.push_back(absl::StrCat(folder, "/", name));
    Write(folder + "/images.txt", absl::StrJoin(paths, "\n"));
    Write(folder + "/labels.txt", "5\n6\n5\n");
    EXPECT_THAT(Identities(absl::StrCat("DATA_SOURCES: [disk_filelist], LABEL_SOURCES: [disk_filelist], DATA_PATHS: ['",
                                        folder, "/images.txt'], LABEL_PATHS: ['", folder, "/labels.txt']")),
                ElementsAre("ant/0.png, class 5", "ant/1.png, class 6", "ape/2.png, class 5"));
  }
}

// Of images that are not here.
Texts OfList(const Texts& paths) {
  const std::string folder = FolderOf({});
  Write(folder + "/images.txt", absl::StrJoin(paths, "\n"));
  return Identities(
      absl::StrCat("DATA_SOURCES: [disk_filelist], DATA_PATHS: ['", folder, "/images.txt'], MAX_BROKEN_FRACTION: 1"));
}

// Disks that one host mounts at other places than another, or has in one folder, or are one.
TEST(SampleIdentity, OfAListOfAbsolutePaths_IsItsLastFolderAndName) {
  const Texts expected = {"train/0.png", "val/1.png"};
  EXPECT_EQ(OfList({"/data1/train/0.png", "/data2/val/1.png"}), expected);
  EXPECT_EQ(OfList({"/vol/d1/train/0.png", "/vol/d2/val/1.png"}), expected);
  EXPECT_EQ(OfList({"/vol/train/0.png", "/vol/val/1.png"}), expected);
  EXPECT_THAT(OfList({"/a/x/0.png", "/a/x/1.png"}), ElementsAre("0.png", "1.png")) << "a folder of any name";
  EXPECT_THAT(OfList({"/0.png", "/a/0.png"}), ElementsAre("0.png", "a/0.png"));
}

// Frames, for one: with equal names in each folder, of which another order is other data.
TEST(SampleIdentity, OfAListWithEqualNames_HasTheFolder) {
  const Texts frames = {"/disk1/ant/0001.png", "/disk2/bee/0001.png"};
  EXPECT_NE(OfList(frames), OfList({frames[1], frames[0]}));
}

TEST(SampleIdentity, OfAListOfRelativePaths_IsBelowTheFolderThatAllShare) {
  EXPECT_THAT(OfList({"x/a/y/0.png", "x/b/y/1.png"}), ElementsAre("a/y/0.png", "b/y/1.png"));
  EXPECT_THAT(OfList({"a/0.png", "b/1.png"}), ElementsAre("a/0.png", "b/1.png"));
}

TEST(SampleIdentity, OfAListWithSeveralLabelFiles_HasAClassOfEach) {
  const std::string folder = FolderOf({"0.png", "1.png"});
  Write(folder + "/images.txt", absl::StrCat(folder, "/0.png\n", folder, "/1.png\n"));
  Write(folder + "/shapes.txt", "5\n6\n");
  Write(folder + "/colours.txt", "1\n0\n");
  EXPECT_THAT(
      Identities(absl::StrCat("DATA_SOURCES: [disk_filelist], LABEL_SOURCES: [disk_filelist], DATA_PATHS: ['", folder,
                              "/images.txt'], LABEL_PATHS: [['", folder, "/shapes.txt', '", folder, "/colours.txt']]"),
                 ", {name: OneHotEncode, num_classes: 7}"),
      ElementsAre("0.png, classes 5 1", "1.png, classes 6 0"));
}

TEST(SampleIdentity, OfPixelsInMemory_IsTheirChecksum) {
  const std::string keys = absl::StrCat("DATA_SOURCES: [torchvision_dataset], DATASET_NAMES: [MNIST], DATA_PATHS: ['",
                                        MakeIdxFolder(), "'], SPLIT: ");
  const Texts test = Identities(keys + "test");
  ASSERT_EQ(test.size(), 2u);
  EXPECT_THAT(test[1], MatchesRegex("pixels [0-9a-f]{8}, class 1"));
  const Texts train = Identities(keys + "train");
  EXPECT_NE(train[1], test[1]) << "other pixels of the same class";
  EXPECT_THAT(Identities(keys + "train"), ElementsAreArray(train));
}

TEST(SampleIdentity, OfComputedImages_IsTheirClass) {
  EXPECT_THAT(Identities("DATA_SOURCES: [synthetic], LABEL_SOURCES: [synthetic], DATA_LIMIT: 3, "
                         "DEFAULT_GRAY_IMG_SIZE: 8, RANDOM_SYNTHETIC_LABELS: 2"),
              ElementsAre("class 0", "class 1", "class 0"));
}

TEST(SampleIdentity, OfSeveralSources_IsThatOfEach) {
  EXPECT_THAT(Identities(absl::StrCat("DATA_SOURCES: [disk_folder, disk_folder], DATA_PATHS: ['",
                                      FolderOf({"bee/0.png"}), "', '", FolderOf({"ant/1.png", "bee/0.png"}), "']")),
              ElementsAre("bee/0.png, class 1", "ant/1.png, class 0", "bee/0.png, class 1"));
}

TEST(SampleIdentity, OfAPart_IsThatOfItsSamples) {
  const Texts names = {"a/0.png", "a/1.png", "a/2.png", "a/3.png", "b/4.png"};
  const Texts part = OfFolder(names, ", DATA_LIMIT: 2");
  const Texts whole = OfFolder(names);
  ASSERT_EQ(part.size(), 2u);
  EXPECT_NE(part[0], part[1]);
  for (const std::string& identity : part) EXPECT_THAT(whole, Contains(identity));
}

}  // namespace
}  // namespace ssl
