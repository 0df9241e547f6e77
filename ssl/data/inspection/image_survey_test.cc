// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/image_survey.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/concat_dataset.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/encoded_image_dataset.h"
#include "ssl/data/datasets/path_list.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/sample.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/folder_root.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// height x width, with a ramp whose direction depends on `seed`.
std::string Png(int height, int width, int seed) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, 3);
  for (int i = 0; i < height * width * 3; ++i) {
    pixels[i] = static_cast<uint8_t>(128 + 100 * std::sin(0.1 * seed + 0.05 * (i / 3) * (1 + seed % 3)));
  }
  return EncodePng(image).value();
}

class ImageSurveyTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(folder_, "/", name);
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
    paths_.Add(path);
  }

  absl::StatusOr<std::vector<SurveyedImage>> Survey() {
    const DiskDataset dataset(paths_, {}, dataset_options_);
    return SurveyImages(dataset, options_);
  }

  const std::string folder_ = MakeTempDir("survey");
  PathList paths_;
  EncodedImageOptions dataset_options_;
  SurveyOptions options_;
};

TEST_F(ImageSurveyTest, EachFile_IsDescribedOrItsFaultIsNamed) {
  Add("good.png", Png(20, 30, 1));
  Add("empty.jpg", "");
  Add("cut.png", Png(20, 30, 1).substr(0, 60));
  Add("page.jpg", "<html>");
  Add("same.png", Png(20, 30, 1));
  paths_.Add(folder_ + "/missing.jpg");
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, Survey());
  std::vector<ReadFault> faults;
  for (const SurveyedImage& image : images) faults.push_back(image.fault);
  EXPECT_THAT(faults, ElementsAre(ReadFault::kNone, ReadFault::kEmpty, ReadFault::kTruncated, ReadFault::kNotAnImage,
                                  ReadFault::kNone, ReadFault::kMissing));
  EXPECT_THAT(images[1].reason, HasSubstr("empty.jpg"));
  EXPECT_THAT(images[5].reason, HasSubstr("missing.jpg"));
  EXPECT_EQ(images[0].height, 20);
  EXPECT_EQ(images[0].width, 30);
  EXPECT_TRUE(images[0].content == images[4].content);
  EXPECT_FALSE(images[0].content == images[2].content);
  EXPECT_EQ(images[0].difference_hash, images[4].difference_hash);
}

TEST_F(ImageSurveyTest, Moments_AreThoseOfThePixels) {
  Image image;  // half black, half (51, 102, 255)
  uint8_t* pixels = image.Allocate(4, 2, 3);
  for (int i = 0; i < 8; ++i) {
    const bool is_black = i < 4;
    for (int c = 0; c < 3; ++c) pixels[3 * i + c] = is_black ? 0 : std::vector<uint8_t>{51, 102, 255}[c];
  }
  Add("half.png", EncodePng(image).value());
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, Survey());
  EXPECT_THAT(images[0].mean, ElementsAre(0.1, 0.2, 0.5));
  EXPECT_THAT(images[0].mean_square,
              ElementsAre(::testing::DoubleEq(0.02), ::testing::DoubleEq(0.08), ::testing::DoubleEq(0.5)));
}

TEST_F(ImageSurveyTest, AnyNumberOfThreads_GivesTheSame) {
  for (int i = 0; i < 40; ++i) Add(absl::StrCat(i, ".png"), i % 7 == 0 ? "no image" : Png(33 + i % 5, 40, i));
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> one, Survey());
  options_.threads = 4;
  std::vector<int64_t> reports;
  options_.on_progress = [&reports](int64_t done) { reports.push_back(done); };
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> four, Survey());
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].fault, four[i].fault) << i;
    EXPECT_TRUE(one[i].content == four[i].content) << i;
    EXPECT_EQ(one[i].mean, four[i].mean) << i;
    EXPECT_EQ(one[i].difference_hash, four[i].difference_hash) << i;
  }
  EXPECT_LE(reports.size(), 40u);
}

TEST_F(ImageSurveyTest, Stop_IsCancelled) {
  for (int i = 0; i < 4; ++i) Add(absl::StrCat(i, ".png"), Png(33, 40, i));
  StopToken stop;
  options_.stop = &stop;
  options_.on_progress = [&stop](int64_t done) {
    if (done == 2) stop.Request(kStopTerminate);
  };
  EXPECT_EQ(Survey().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ImageSurveyTest, BadDisk_IsUnreadableAndNoDescriptorLeft_IsAnError) {
  Add("0.png", Png(33, 40, 0));
  FaultFileSystem files(PosixFileSystem(), folder_);
  files.set_fault_reads(true);
  dataset_options_.file_system = &files;
  files.FailCall(1, EIO, FaultFileSystem::Repeat::kOnce);
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, Survey());
  EXPECT_EQ(images[0].fault, ReadFault::kUnreadable);
  files.FailCall(files.calls() + 1, EMFILE, FaultFileSystem::Repeat::kOnce);
  EXPECT_FALSE(Survey().ok());
}

// A training would not open it either.
TEST_F(ImageSurveyTest, LinkOutOfTheFolder_IsUnreadableWhereATrainingMayNotFollowIt) {
  const std::string elsewhere = MakeTempDir("elsewhere");
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), elsewhere + "/secret.png", Png(33, 40, 0)));
  ASSERT_EQ(symlink((elsewhere + "/secret.png").c_str(), (folder_ + "/link.png").c_str()), 0);
  Add("own.png", Png(33, 40, 1));
  paths_.Add(folder_ + "/link.png");
  dataset_options_.root = FolderRoot::Open(folder_).value();
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, Survey());
  EXPECT_EQ(images[0].fault, ReadFault::kNone);
  EXPECT_EQ(images[1].fault, ReadFault::kUnreadable);
  EXPECT_THAT(images[1].reason, HasSubstr("leads out of"));
}

TEST_F(ImageSurveyTest, Parts_AreReadAsTheirDataSetReadsThem) {
  Add("good.png", Png(20, 30, 1));
  Add("page.jpg", "<html>");
  std::vector<std::unique_ptr<Dataset>> parts;
  parts.push_back(std::make_unique<DiskDataset>(paths_, std::vector<int64_t>(), EncodedImageOptions()));
  parts.push_back(ArrayDataset::Create({1, 1, 1, 1, {7}, {}}, "arrays").value());
  auto joined = std::make_unique<ConcatDataset>(std::move(parts));
  const SubsetDataset subset(std::move(joined), {2, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, SurveyImages(subset, {}));
  EXPECT_EQ(images[0].fault, ReadFault::kNone);
  EXPECT_EQ(images[1].fault, ReadFault::kNotAnImage);
}

// A host's data set whose images do not fit into memory, or that is written with exceptions.
class ThrowingDataset : public Dataset {
 public:
  int64_t size() const override { return 8; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "throwing"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (index == 5) throw std::bad_alloc();
    sample->view(0).image.Allocate(2, 2, 1)[0] = 0;
    return absl::OkStatus();
  }
};

// A host's data set of which image 1 has no pixels and image 2 an alpha channel.
class OddImages : public Dataset {
 public:
  int64_t size() const override { return 3; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "odd images"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (index != 1) std::fill_n(sample->view(0).image.Allocate(2, 2, index == 0 ? 3 : 4), 12, uint8_t{0});
    return absl::OkStatus();
  }
};

TEST(ImageSurvey, ImagesThatNoTransformCanWorkOn_AreBroken) {
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, SurveyImages(OddImages(), {}));
  EXPECT_EQ(images[0].fault, ReadFault::kNone);
  EXPECT_THAT(images[1].reason, HasSubstr("sample 1 of odd images: the data set gave an image of 0 x 0 pixels"));
  EXPECT_THAT(images[2].reason, HasSubstr("sample 2 of odd images: the data set gave an image of 2 x 2 pixels and 4"));
}

TEST(ImageSurvey, NoMemory_IsAnErrorInAnyThread) {
  SurveyOptions options;
  for (const int64_t threads : {1, 4}) {
    options.threads = threads;
    EXPECT_THAT(SurveyImages(ThrowingDataset(), options),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("reading images: out of memory")));
  }
}

TEST(ImageSurvey, Arrays_AreKeyedByTheirPixels) {
  ImageArray array;
  array.count = 3;
  array.height = 2;
  array.width = 2;
  array.pixels = {0, 255, 255, 0, 10, 20, 30, 40, 0, 255, 255, 0};
  ASSERT_OK_AND_ASSIGN(const auto dataset, ArrayDataset::Create(array, "arrays"));
  ASSERT_OK_AND_ASSIGN(const std::vector<SurveyedImage> images, SurveyImages(*dataset, {}));
  EXPECT_TRUE(images[0].content == images[2].content);
  EXPECT_FALSE(images[0].content == images[1].content);
  EXPECT_EQ(images[0].channels, 1);
  EXPECT_DOUBLE_EQ(images[0].mean[0], 0.5);
}

}  // namespace
}  // namespace ssl
