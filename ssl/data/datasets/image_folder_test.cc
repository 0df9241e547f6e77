// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_folder.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Makes empty files, with their folders.
std::string MakeTree(const std::vector<std::string>& files) {
  const std::string folder = MakeTempDir("folder");
  for (const std::string& file : files) {
    const std::string path = absl::StrCat(folder, "/", file);
    EXPECT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
    EXPECT_OK(PosixFileSystem().Create(path).value()->Close());
  }
  return folder;
}

// The paths below `folder`.
std::vector<std::string> PathsBelow(const std::string& folder, const ImageFolder& scanned) {
  std::vector<std::string> paths;
  for (int64_t i = 0; i < scanned.paths.size(); ++i) paths.push_back(scanned.paths[i].substr(folder.size() + 1));
  return paths;
}

TEST(ImageFolder, ClassesAndFiles_AreSortedAsTorchvisionSortsThem) {
  // In the sorted paths of the folders of class "b", "b/x-y" stands before "b/x/z": '-' is below '/'.
  const std::string folder = MakeTree({"b/2.jpg", "b/10.png", "b/x/z/1.jpg", "b/x-y/5.JPEG", "b/x/4.webp", "a/Z.PNG",
                                       "a/a.jpg", "B/1.bmp", "b/readme.txt", "b/jpg", "top.jpg"});

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));

  EXPECT_THAT(scanned.classes, ElementsAre("B", "a", "b"));
  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("B/1.bmp", "a/Z.PNG", "a/a.jpg", "b/10.png", "b/2.jpg",
                                                       "b/x/4.webp", "b/x-y/5.JPEG", "b/x/z/1.jpg"));
  EXPECT_THAT(scanned.labels, ElementsAre(0, 1, 1, 2, 2, 2, 2, 2));
}

TEST(ImageFolder, LinksToFoldersAreFollowed_AndASlashAtTheEndChangesNothing) {
  const std::string elsewhere = MakeTree({"real/1.jpg"});
  const std::string folder = MakeTree({"a/1.jpg"});
  std::filesystem::create_directory_symlink(elsewhere + "/real", folder + "/linked");
  std::filesystem::create_symlink(folder + "/nowhere", folder + "/a/dangling");

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder + "/"));

  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("a/1.jpg", "linked/1.jpg"));
}

TEST(ImageFolder, MissingFolder_IsNamed) {
  EXPECT_THAT(ScanImageFolder("no/such/folder"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/folder: cannot list the folder: No such file")));
}

TEST(ImageFolder, LinkBackUp_IsPassedOverAndNamed) {
  const std::string folder = MakeTree({"a/1.jpg", "b/2.jpg", "b/c/3.jpg"});
  std::filesystem::create_directory_symlink("..", folder + "/a/up");
  std::filesystem::create_directory_symlink("/", folder + "/b/c/root");
  std::filesystem::create_directory_symlink("../c", folder + "/b/c/self");

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));

  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("a/1.jpg", "b/2.jpg", "b/c/3.jpg"));
  EXPECT_THAT(scanned.labels, ElementsAre(0, 1, 1));
  EXPECT_THAT(scanned.passed_over, ElementsAre("3 links to a folder above the classes or counted already: a/up, "
                                               "b/c/root, b/c/self"));
}

// Each of 30 folders has two links to the next: followed blindly, 2^30 paths.
TEST(ImageFolder, ManyLinksToOneFolder_CountItOnce) {
  const std::string elsewhere = MakeTree({"30/1.jpg"});
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(elsewhere, "/", i)));
    for (const char* name : {"x", "y"}) {
      std::filesystem::create_directory_symlink(absl::StrCat(elsewhere, "/", i + 1),
                                                absl::StrCat(elsewhere, "/", i, "/", name));
    }
  }
  const std::string folder = MakeTree({"b/1.jpg"});
  std::filesystem::create_directory_symlink(elsewhere + "/0", folder + "/a");

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));

  EXPECT_EQ(scanned.paths.size(), 2);
  EXPECT_THAT(scanned.passed_over, ElementsAre(StartsWith("30 links to a folder ")));
}

TEST(ImageFolder, ClassThatIsALinkBack_IsNamedAsEmpty) {
  const std::string folder = MakeTree({"a/1.jpg"});
  std::filesystem::create_directory_symlink(".", folder + "/self");
  EXPECT_THAT(ScanImageFolder(folder),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 class folder holds no image, expected at least "
                                                                     "one in each: self")));
}

TEST(ImageFolder, HiddenFoldersAndStrayImages_ArePassedOverWithACount) {
  const std::string folder =
      MakeTree({".git/x/1.jpg", ".cache/1.jpg", "a/1.jpg", "a/.ipynb_checkpoints/1.jpg", "stray.jpg"});

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));

  EXPECT_THAT(scanned.classes, ElementsAre("a"));
  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("a/1.jpg"));
  EXPECT_THAT(scanned.passed_over, ElementsAre("3 hidden folders: .cache, .git, a/.ipynb_checkpoints",
                                               "1 image beside the class folders: stray.jpg"));
}

TEST(ImageFolder, FlatFolder_IsRefusedWithTheWaysOut) {
  const std::string folder = MakeTree({"1.jpg", "2.jpg"});
  EXPECT_THAT(ScanImageFolder(folder),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(folder + ": holds no folders but 2 images, expected one for each class"),
                             HasSubstr(folder + "/all"), HasSubstr("DATA_SOURCES to [disk_filelist]"))));
}

TEST(ImageFolder, EmptyClasses_AreCountedAndNamedWithTheWayOut) {
  const std::string folder = MakeTree({"a/1.jpg", "b/x", "c/x", "d/x", "e/x", "f/x", "notes/x"});
  EXPECT_THAT(ScanImageFolder(folder),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("6 class folders hold no image"), HasSubstr(": b, c, d, e, f, ...; move what"),
                             HasSubstr("out of " + folder))));
}

// Every look at it takes a second and a half.
class SlowClock : public Clock {
 public:
  absl::Time Now() override { return now_ += absl::Milliseconds(1500); }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

TEST(ImageFolder, LongScan_ReportsItsProgress) {
  const std::string folder = MakeTree({"a/1.jpg", "b/1.jpg", "c/x/1.jpg", "d/1.jpg"});
  SlowClock clock;
  const CapturedLog log;

  ASSERT_OK(ScanImageFolder(folder, clock));

  EXPECT_THAT(log.lines,
              ElementsAre(folder + ": 2 images in 2 folders so far", folder + ": 4 images in 5 folders so far"));
}

TEST(ImageFolder, QuickScan_IsSilent) {
  const std::string folder = MakeTree({"a/1.jpg"});
  const CapturedLog log;
  ASSERT_OK(ScanImageFolder(folder));
  EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace ssl
