// SPDX-License-Identifier: Apache-2.0
//
// ENABLE_QUEUE_DATASET over all of a split's data set: which image takes the place of a broken one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kImages = 10;

// What a batch source makes of a sample.
struct Row {
  int64_t index = 0;
  int64_t label = 0;
  int value = 0;  // of its pixels
  bool operator==(const Row& other) const {
    return index == other.index && label == other.label && value == other.value;
  }
};

class BrokenNeighbourTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  static std::string PathOf(const std::string& folder, int image) {
    return absl::StrFormat("%s/%s/%02d.png", folder, image < kImages / 2 ? "a" : "b", image);
  }

  // Image i has the value first + i, but for those that are no images; the first half are of the class "a".
  static std::string MakeFolder(const std::set<int>& broken, int first = 0) {
    const std::string folder = MakeTempDir("images");
    for (const char* name : {"a", "b"}) EXPECT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(folder, "/", name)));
    for (int i = 0; i < kImages; ++i) {
      Image image;
      std::fill_n(image.Allocate(4, 4, 1), 16, static_cast<uint8_t>(first + i));
      EXPECT_OK(WriteFileAtomically(PosixFileSystem(), PathOf(folder, i),
                                    broken.count(i) > 0 ? "no image" : EncodePng(image).value()));
    }
    return folder;
  }

  // All samples of a split with these lines, in the data set's order.
  std::vector<Row> Read(const std::string& split) {
    ConfigNode config = registries_.options.Defaults();
    MergeInto(&config, ParseYaml(absl::StrCat("DATA:\n  NUM_DATALOADER_WORKERS: 0\n  TEST: {", split,
                                              ", ENABLE_QUEUE_DATASET: True, MAX_BROKEN_FRACTION: 1, "
                                              "DEFAULT_GRAY_IMG_SIZE: 4, IMAGE_CHANNELS: 3, "
                                              "BATCHSIZE_PER_REPLICA: 32, TRANSFORMS: [{name: ImgPilToRawTensor}]}\n"),
                                 "run.yaml", nullptr)
                           .value());
    const std::unique_ptr<Communicator> local = MakeLocalCommunicator();
    const std::unique_ptr<BatchSource> source =
        MakeTestSource(config.Section("DATA.TEST"), {config, registries_, *local}).value();
    EXPECT_OK(source->StartEpoch(0, 0));
    const Batch* batch = source->Next().value();
    std::vector<Row> rows;
    for (int64_t i = 0; i < batch->size(); ++i) {
      rows.push_back({batch->indices[i].item<int64_t>(), batch->targets[i].item<int64_t>(),
                      static_cast<int>(std::lround(batch->views[0][i][0][0][0].item<float>()))});
    }
    return rows;
  }

  std::set<int> Values(const std::string& split) {
    std::set<int> values;
    for (const Row& row : Read(split)) values.insert(row.value);
    return values;
  }

  Registries registries_;
};

std::string Folder(const std::string& folder) {
  return absl::StrCat("DATA_SOURCES: [disk_folder], DATA_PATHS: [", folder, "]");
}

TEST_F(BrokenNeighbourTest, NextImage_StandsUnderTheLabelAndIndexOfTheBrokenOne) {
  const std::vector<Row> rows = Read(Folder(MakeFolder({3, 4, 9})));
  ASSERT_THAT(rows, SizeIs(kImages));
  EXPECT_TRUE(rows[3] == (Row{3, 0, 5}));
  EXPECT_TRUE(rows[4] == (Row{4, 0, 5})) << "of the other class";
  EXPECT_TRUE(rows[5] == (Row{5, 1, 5}));
  EXPECT_TRUE(rows[9] == (Row{9, 1, 0})) << "the first follows the last";
}

TEST_F(BrokenNeighbourTest, WithoutAReadableOne_ItIsGrey) {
  std::set<int> all;
  for (int i = 0; i < kImages; ++i) all.insert(i);
  EXPECT_THAT(Values(Folder(MakeFolder(all))), ElementsAre(128));
}

// What is held out is not compared with itself.
TEST_F(BrokenNeighbourTest, HeldOutImages_AreNone) {
  const auto part = [](const std::string& folder, const char* split) {
    return absl::StrCat(Folder(folder), ", HOLD_OUT_FRACTION: 0.2, SPLIT: ", split);
  };
  const std::set<int> held_out = Values(part(MakeFolder({}), "test"));
  ASSERT_THAT(held_out, SizeIs(2));
  std::set<int> before;  // each held-out image, of the training part
  for (const int image : held_out) before.insert((image + kImages - 1) % kImages);
  for (const int image : held_out) before.erase(image);
  ASSERT_THAT(before, testing::Not(IsEmpty()));
  const std::set<int> trained = Values(part(MakeFolder(before), "train"));
  for (const int image : held_out) EXPECT_EQ(trained.count(image), 0u) << image;
}

TEST_F(BrokenNeighbourTest, ImagesBeyondTheLimit_AreNone) {
  const std::string limit = ", DATA_LIMIT: 4";
  std::set<int> taken = Values(Folder(MakeFolder({})) + limit);
  ASSERT_THAT(taken, SizeIs(4));
  for (int broken = 0; broken < kImages; ++broken) {
    for (const int value : Values(Folder(MakeFolder({broken})) + limit)) EXPECT_EQ(taken.count(value), 1u) << value;
  }
}

TEST_F(BrokenNeighbourTest, NextSource_FollowsTheLastImageOfOne) {
  const std::string split = absl::StrCat("DATA_SOURCES: [disk_folder, disk_folder], DATA_PATHS: [", MakeFolder({9}),
                                         ", ", MakeFolder({9}, 100), "]");
  const std::vector<Row> rows = Read(split);
  ASSERT_THAT(rows, SizeIs(2 * kImages));
  EXPECT_TRUE(rows[9] == (Row{9, 1, 100}));
  EXPECT_TRUE(rows[19] == (Row{19, 1, 0}));
}

}  // namespace
}  // namespace ssl
