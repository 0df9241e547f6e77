// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/shared_images.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

class Files : public Dataset {
 public:
  explicit Files(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  bool has_labels() const override { return false; }
  std::string description() const override { return "files"; }
  absl::Status Get(int64_t, Sample*) const override { return absl::OkStatus(); }
  std::string ImagePath(int64_t index) const override { return paths_[index]; }

 private:
  const std::vector<std::string> paths_;
};

// Without files.
class Arrays : public Files {
 public:
  Arrays(int64_t size, std::string content) : Files(std::vector<std::string>(size)), content_(std::move(content)) {}
  std::string SampleIdentity(int64_t index) const override { return absl::StrCat(content_, index); }

 private:
  const std::string content_;
};

TEST(SharedImagesTest, FilesAreCompared_HoweverTheirFoldersAreSpelled) {
  const std::string root = MakeTempDir("shared");
  ASSERT_OK(PosixFileSystem().CreateDirectories(root + "/photos/ant"));
  ASSERT_OK(PosixFileSystem().CreateDirectories(root + "/other"));
  const Files train({root + "/photos/ant/1.jpg", root + "/photos/ant/2.jpg"});
  EXPECT_EQ(CountSharedImages(train, train), 2);
  EXPECT_EQ(CountSharedImages(train, Files({root + "/other/../photos/./ant/2.jpg", root + "/other/1.jpg"})), 1);
  EXPECT_EQ(CountSharedImages(train, Files({root + "/other/1.jpg"})), 0);
  EXPECT_EQ(CountSharedImages(train, Files({})), 0);
}

TEST(SharedImagesTest, LinksToFolders_AreTheFolders) {
  const std::string root = MakeTempDir("shared");
  ASSERT_OK(PosixFileSystem().CreateDirectories(root + "/photos/ant"));
  ASSERT_OK(PosixFileSystem().CreateDirectories(root + "/other"));
  std::filesystem::create_directory_symlink("photos", root + "/link");
  std::filesystem::create_directory_symlink("../photos/ant", root + "/other/bee");
  std::filesystem::create_directory_symlink("loop", root + "/loop");
  const Files train({root + "/photos/ant/1.jpg", root + "/loop/x/1.jpg"});
  EXPECT_EQ(CountSharedImages(train, Files({root + "/link/ant/1.jpg", root + "/other/bee/../ant/1.jpg"})), 2);
  EXPECT_EQ(CountSharedImages(train, Files({root + "/loop/x/1.jpg", root + "/loop/1.jpg"})), 1);
  EXPECT_EQ(CountSharedImages(train, Files({root + "//photos/ant//1.jpg", root + "/photos/bee/1.jpg"})), 1);
}

TEST(SharedImagesTest, PathsWithoutAFolder_BeginInTheWorkingDirectory) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(CountSharedImages(Files({"1.jpg", "x/1.jpg"}), Files({here + "/1.jpg", here + "/./x/1.jpg", "/1.jpg"})), 2);
}

TEST(SharedImagesTest, NamesWithinATarFile_AreTakenAsTheyAre) {
  const std::string root = MakeTempDir("shared");
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), root + "/x.tar", "tar"));
  const Files train({root + "/x.tar/a/0.png", root + "/x.tar/./a/1.png", root + "/x.tar/../2.png"});
  EXPECT_EQ(CountSharedImages(train, Files({root + "/./x.tar/a/0.png"})), 1);
  EXPECT_EQ(CountSharedImages(train, Files({root + "/x.tar/a/1.png", root + "/2.png"})), 0);
}

// As several sources have, of which some are arrays.
TEST(SharedImagesTest, ImagesWithoutAPath_AreNotEachOther) {
  EXPECT_EQ(CountSharedImages(Files({"a/1.jpg", "", ""}), Files({"a/1.jpg", "", "a/2.jpg"})), 1);
  EXPECT_EQ(CountSharedImages(Files({"", "a/1.jpg"}), Files({"", "", "a/1.jpg"})), 1);
  EXPECT_EQ(CountSharedImages(Files({"", ""}), Files({"", ""})), 0);
}

TEST(SharedImagesTest, ArraysAreCompared_ByWhatTellsThemApart) {
  EXPECT_EQ(CountSharedImages(Arrays(5, "a"), Arrays(5, "a")), 5);
  EXPECT_EQ(CountSharedImages(Arrays(5, "a"), Arrays(5, "b")), 0);
  EXPECT_EQ(CountSharedImages(Arrays(5, "a"), Arrays(4, "a")), 4);
}

// A checksum of few bits is equal for some of many images.
TEST(SharedImagesTest, EqualIdentitiesAtOtherPositions_AreOfOtherImages) {
  class Shifted : public Arrays {
   public:
    Shifted() : Arrays(5, "a") {}
    std::string SampleIdentity(int64_t index) const override { return Arrays::SampleIdentity((index + 1) % 5); }
  };
  EXPECT_EQ(CountSharedImages(Arrays(5, "a"), Shifted()), 0);
}

TEST(SharedImagesTest, SentenceIsForSomeOnly) {
  EXPECT_EQ(SharedImagesSentence(0, 7), "");
  EXPECT_EQ(SharedImagesSentence(1, 7).substr(0, 43), "1 of the 7 test images is a training image,");
}

}  // namespace
}  // namespace ssl
