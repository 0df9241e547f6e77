// SPDX-License-Identifier: Apache-2.0
//
// Data sets of files that keep their images in memory: the same images, counts and faults as without.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/concat_dataset.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/sample.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/folder_root.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 30;

std::string TestImage(const std::string& name) {
  const std::string path = absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                                        "/ssl/data/testdata/decode/images/", name);
  return PosixFileSystem().Read(path).value();
}

void WriteImage(const std::string& path, const std::string& bytes) {
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
}

std::unique_ptr<DiskDataset> Images(const std::vector<std::string>& files) {
  PathList paths;
  for (const std::string& file : files) paths.Add(file);
  EncodedImageOptions options;
  options.max_broken_fraction = 0.9;
  options.turns_upright = true;
  return std::make_unique<DiskDataset>(std::move(paths), std::vector<int64_t>(), std::move(options));
}

// What was read of sample 0 ... n - 1, one after another.
struct Reading {
  std::vector<std::vector<uint8_t>> pixels;
  std::vector<ReadFault> faults;
  std::vector<bool> borrowed;
};

Reading ReadAll(const Dataset& dataset) {
  Reading reading;
  Sample sample;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    sample.ResetViews(1);
    sample.fault = ReadFault::kNone;
    EXPECT_OK(dataset.Get(i, &sample));
    const Image& image = sample.view(0).image;
    reading.pixels.emplace_back(image.pixels(), image.pixels() + image.size_bytes());
    reading.faults.push_back(sample.fault);
    reading.borrowed.push_back(image.is_borrowed());
  }
  return reading;
}

class CachedImages : public ::testing::TestWithParam<CacheContent> {
 protected:
  void SetUp() override {
    folder_ = MakeTempDir("cached");
    for (const char* name : {"rgb_q90.jpg", "gray.png", "progressive.jpg"}) {
      files_.push_back(absl::StrCat(folder_, "/", name));
      WriteImage(files_.back(), TestImage(name));
    }
    files_.push_back(absl::StrCat(folder_, "/broken.jpg"));
    WriteImage(files_.back(), "no image");
  }

  std::string folder_;
  std::vector<std::string> files_;
};

TEST_P(CachedImages, AreThoseOfTheFiles) {
  const Reading expected = ReadAll(*Images(files_));
  const std::unique_ptr<DiskDataset> cached = Images(files_);
  cached->KeepInMemory({GetParam(), kPlenty});
  for (int epoch = 0; epoch < 3; ++epoch) {
    const Reading reading = ReadAll(*cached);
    EXPECT_EQ(reading.pixels, expected.pixels);
    EXPECT_EQ(reading.faults, expected.faults);
    // Decoded images are lent, not copied.
    const bool lent = epoch > 0 && GetParam() == CacheContent::kDecoded;
    EXPECT_EQ(reading.borrowed, (std::vector<bool>{lent, lent, lent, false}));
  }
  EXPECT_EQ(cached->broken()->Summary(), "this process tried 4 images, 1 of which cannot be read: 1 not an image");
}

// Broken ones are read in every epoch; good ones from the cache come between them.
TEST_P(CachedImages, DoNotMakeBrokenOnesARow) {
  const std::unique_ptr<DiskDataset> cached = Images(files_);
  cached->KeepInMemory({GetParam(), kPlenty});
  for (int64_t epoch = 0; epoch <= BrokenImages::kMostInARow + 1; ++epoch) ReadAll(*cached);
}

TEST_P(CachedImages, OfAFileThatChanges_AreReadAnew) {
  const std::unique_ptr<DiskDataset> cached = Images(files_);
  cached->KeepInMemory({GetParam(), kPlenty});
  ReadAll(*cached);
  WriteImage(files_[0], TestImage("odd_q50.jpg"));
  ASSERT_OK(PosixFileSystem().RemoveFile(files_[1]));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Reading reading = ReadAll(*cached);
    EXPECT_EQ(reading.pixels, ReadAll(*Images(files_)).pixels);
    EXPECT_EQ(reading.faults, (std::vector<ReadFault>{ReadFault::kNone, ReadFault::kMissing, ReadFault::kNone,
                                                      ReadFault::kNotAnImage}));
  }
}

TEST_P(CachedImages, BeyondTheBoundAreReadFromTheirFiles) {
  const Reading expected = ReadAll(*Images(files_));
  const std::unique_ptr<DiskDataset> cached = Images(files_);
  cached->KeepInMemory({GetParam(), 1});
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(ReadAll(*cached).pixels, expected.pixels);
}

// A host's file system, such as one of a store in the network: its paths are unknown to the machine's.
class RemoteFiles : public FaultFileSystem {
 public:
  explicit RemoteFiles(const std::string& folder) : FaultFileSystem(PosixFileSystem(), folder) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override {
    ++opened_;
    return FaultFileSystem::OpenRead(Local(path));
  }
  absl::StatusOr<int64_t> Size(const std::string& path) override { return FaultFileSystem::Size(Local(path)); }

  int opened() const { return opened_; }

 private:
  static std::string Local(const std::string& path) { return std::string(absl::StripPrefix(path, "store:")); }

  int opened_ = 0;
};

TEST_P(CachedImages, OfAHostsFileSystem_AreKeptWhileTheirSizeIsTheSame) {
  RemoteFiles files(folder_);
  PathList paths("store:");
  for (int i = 0; i < 3; ++i) paths.Add(files_[i]);
  EncodedImageOptions options;
  options.turns_upright = true;
  options.file_system = &files;
  DiskDataset cached(std::move(paths), {}, std::move(options));
  cached.KeepInMemory({GetParam(), kPlenty});
  const std::vector<std::string> local(files_.begin(), files_.begin() + 3);
  const Reading expected = ReadAll(*Images(local));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Reading reading = ReadAll(cached);
    EXPECT_EQ(reading.faults, expected.faults);
    EXPECT_EQ(reading.pixels, expected.pixels);
  }
  EXPECT_EQ(files.opened(), 3);
  WriteImage(files_[0], TestImage("odd_q50.jpg"));
  EXPECT_EQ(ReadAll(cached).pixels, ReadAll(*Images(local)).pixels);
}

// What is wrong with a file is told by opening it, as without.
TEST_P(CachedImages, ThatCannotBeOpened_HaveTheFaultThatTheyHaveWithout) {
  ASSERT_EQ(symlink("../elsewhere/gone.jpg", (folder_ + "/link.jpg").c_str()), 0);
  const auto faults = [this](bool cached) {
    PathList paths;
    paths.Add(folder_ + "/link.jpg");
    paths.Add(files_[0]);
    EncodedImageOptions options;
    options.max_broken_fraction = 0.9;
    options.root = FolderRoot::Open(folder_).value();
    DiskDataset images(std::move(paths), {}, std::move(options));
    if (cached) images.KeepInMemory({GetParam(), kPlenty});
    return ReadAll(images).faults;
  };
  EXPECT_EQ(faults(true), faults(false));
}

TEST_P(CachedImages, OfPartsAndSubsets_AreKeptByTheDataSetThatReadsThem) {
  CapturedLog log;
  {
    std::vector<std::unique_ptr<Dataset>> parts;
    parts.push_back(Images({files_[0]}));
    parts.push_back(Images({files_[1], files_[2]}));
    auto joined = std::make_unique<ConcatDataset>(std::move(parts));
    SubsetDataset subset(std::move(joined), {2, 0});
    subset.KeepInMemory({GetParam(), 3 * kPlenty});
    const Reading first = ReadAll(subset);
    EXPECT_EQ(ReadAll(subset).pixels, first.pixels);
  }
  const std::string text = log.Text();
  EXPECT_NE(text.find("of at most 1073.7 MB) served 1 of 2 reads"), std::string::npos) << text;
  EXPECT_NE(text.find("of at most 2147.5 MB) served 1 of 2 reads"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Contents, CachedImages, ::testing::Values(CacheContent::kDecoded, CacheContent::kRaw),
                         [](const auto& info) { return info.param == CacheContent::kRaw ? "Raw" : "Decoded"; });

}  // namespace
}  // namespace ssl
