// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/io/file_system.h"
#include "ssl/io/folder_root.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/folder: listing failed: No such file")));
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

TEST(ImageFolder, LinksBackBesideTheClasses_ArePassedOver) {
  const std::string folder = MakeTree({"a/1.jpg"});
  std::filesystem::create_directory_symlink(".", folder + "/self");
  std::filesystem::create_directory_symlink("..", folder + "/up");
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));
  EXPECT_THAT(scanned.classes, ElementsAre("a"));
  EXPECT_THAT(scanned.passed_over, ElementsAre("2 links to a folder above the classes or counted already: self, up"));
}

TEST(ImageFolder, LinkBackBesideImages_MakesNoClass) {
  const std::string folder = MakeTree({"1.jpg"});
  std::filesystem::create_directory_symlink(".", folder + "/self");
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));
  EXPECT_THAT(scanned.classes, IsEmpty());
  EXPECT_EQ(scanned.paths.size(), 1);
}

TEST(ImageFolder, FilesOfOtherKinds_AreCounted) {
  const std::string folder = MakeTree({"a/1.jpg", "a/1.HEIC", "a/x/2.heic", "b/1.gif", "b/2.jpg", "b/README"});
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));
  EXPECT_THAT(scanned.passed_over,
              ElementsAre("4 files of kinds that are not read: .heic 2, .gif 1, without an end 1"));
}

TEST(ImageFolder, OnlyFilesOfOtherKinds_AreInTheRefusal) {
  EXPECT_THAT(
      ScanImageFolder(MakeTree({"1.HEIC", "2.HEIC"})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has 2 files of kinds that are not read: .heic 2")));
  EXPECT_THAT(ScanImageFolder(MakeTree({"a/1.HEIC"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("passed over: 1 file of kinds that are not read: .heic 1")));
}

// What macOS leaves beside each file on a disk of another system.
TEST(ImageFolder, HiddenFiles_AreNoImages) {
  const std::string folder = MakeTree({"a/1.jpg", "a/._1.jpg", ".2.jpg", "a/.DS_Store"});
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));
  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("a/1.jpg"));
  EXPECT_THAT(scanned.passed_over, ElementsAre("2 hidden images: .2.jpg, a/._1.jpg"));
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

TEST(ImageFolder, FlatFolder_HasImagesWithoutClasses) {
  const std::string folder = MakeTree({"2.jpg", "1.jpg", "notes.txt", ".hidden/3.jpg"});
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder + "/"));
  EXPECT_THAT(PathsBelow(folder, scanned), ElementsAre("1.jpg", "2.jpg"));
  EXPECT_THAT(scanned.classes, IsEmpty());
  EXPECT_THAT(scanned.labels, IsEmpty());
}

TEST(ImageFolder, FolderOfNothing_IsRefusedWithWhatIsExpected) {
  const std::string folder = MakeTree({"notes.txt"});
  EXPECT_THAT(ScanImageFolder(folder), StatusIs(absl::StatusCode::kInvalidArgument,
                                                AllOf(HasSubstr(folder + ": holds neither folders nor images"),
                                                      HasSubstr("images without classes"))));
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

TEST(ImageFolder, NamesThatAreNoUtf8_AreBytes) {
  const std::string folder = MakeTree({"\xff\xfe/\x80.jpg", "\xc3\xa9t\xc3\xa9/1.jpg", "a\nb/1.jpg"});
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder(folder));
  EXPECT_THAT(scanned.classes, ElementsAre("a\nb", "\xc3\xa9t\xc3\xa9", "\xff\xfe"));
  EXPECT_EQ(scanned.paths[2], folder + "/\xff\xfe/\x80.jpg");
}

// What is listed below `root`.
absl::StatusOr<ImageFolder> ScanBelow(const std::string& root, const std::string& folder) {
  const absl::StatusOr<std::unique_ptr<FolderRoot>> below = FolderRoot::Open(root);
  if (!below.ok()) return below.status();
  ScanOptions options;
  options.root = below->get();
  return ScanImageFolder(folder, options);
}

TEST(ImageFolder, BelowARoot_LinksInsideAreFollowed) {
  const std::string root = MakeTree({"train/a/1.jpg", "more/2.jpg", "train/a/x/3.jpg"});
  std::filesystem::create_directory_symlink("../more", root + "/train/b");
  std::filesystem::create_directory_symlink("..", root + "/train/a/up");
  std::filesystem::create_directory_symlink("loop", root + "/train/a/loop");
  std::filesystem::create_symlink("nowhere", root + "/train/a/dangling");
  for (const std::string& below : {root, root + "/train", root + "/train/"}) {
    ASSERT_OK_AND_ASSIGN(const ImageFolder anywhere, ScanImageFolder(root + "/train"));
    if (below != root) {  // then the link to the folder beside it leads out
      ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanBelow(below, root + "/train"));
      EXPECT_THAT(PathsBelow(root, scanned), ElementsAre("train/a/1.jpg", "train/a/x/3.jpg"));
      EXPECT_THAT(scanned.passed_over, Contains("1 link with a target that is closed or outside PATHS_BELOW: b"));
      continue;
    }
    ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanBelow(below, root + "/train"));
    EXPECT_EQ(PathsBelow(root, scanned), PathsBelow(root, anywhere));
    EXPECT_THAT(PathsBelow(root, scanned), ElementsAre("train/a/1.jpg", "train/a/x/3.jpg", "train/b/2.jpg"));
    EXPECT_EQ(scanned.passed_over, anywhere.passed_over);
  }
}

TEST(ImageFolder, BelowARoot_NothingOutsideIsListed) {
  const std::string outside = MakeTree({"secret/1.jpg"});
  const std::string root = MakeTree({"a/1.jpg", "b/2.jpg"});
  std::filesystem::create_directory_symlink(outside + "/secret", root + "/c");
  std::filesystem::create_directory_symlink(outside, root + "/a/deep");
  std::filesystem::create_directory_symlink("/", root + "/b/root");
  std::filesystem::create_symlink(outside + "/secret/1.jpg", root + "/b/3.jpg");

  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanBelow(root, root));
  EXPECT_THAT(scanned.classes, ElementsAre("a", "b"));
  EXPECT_THAT(PathsBelow(root, scanned), ElementsAre("a/1.jpg", "b/2.jpg", "b/3.jpg")) << "3.jpg is not read later";
  EXPECT_THAT(scanned.passed_over,
              ElementsAre("3 links with a target that is closed or outside PATHS_BELOW: c, a/deep, b/root"));

  EXPECT_THAT(ScanBelow(root, outside), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("does not lie below")));
  EXPECT_THAT(ScanBelow(root, root + "/c"), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("leads out of")));
  EXPECT_THAT(ScanBelow(root, root + "/none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none: listing")));
  const std::string links = MakeTree({"readme.txt"});
  std::filesystem::create_directory_symlink(outside, links + "/class");
  EXPECT_THAT(ScanBelow(links, links),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("holds neither folders nor images"), HasSubstr("PATHS_BELOW: class"))));
}

// Without the rights of root, to whom every folder is open. Paths are relative: what lies above may be closed, too.
TEST(ImageFolder, UnreadableFolder_EndsTheScanAndIsNamed) {
  const std::string folder = MakeTree({"root/a/1.jpg", "root/b/closed/2.jpg", "root/b/3.jpg"});
  const std::filesystem::path working = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  for (const char* open : {".", "root", "root/a", "root/b"}) ASSERT_EQ(chmod(open, 0755), 0);
  ASSERT_EQ(chmod("root/b/closed", 0000), 0);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);
  const absl::Status anywhere = ScanImageFolder("root").status();
  const absl::Status below = ScanBelow("root", "root").status();
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod("root/b/closed", 0755), 0);
  std::filesystem::current_path(working);
  for (const absl::Status& status : {anywhere, below}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("root/b/closed: listing failed")));
  }
}

TEST(ImageFolder, LongScan_ReportsItsProgress) {
  const std::string folder = MakeTree({"a/1.jpg", "b/1.jpg", "c/x/1.jpg", "d/1.jpg"});
  SlowClock clock;
  const CapturedLog log;

  ASSERT_OK(ScanImageFolder(folder, {&PosixFileSystem(), nullptr, &clock}));

  EXPECT_THAT(log.lines,
              ElementsAre(folder + ": 2 images in 2 folders so far", folder + ": 4 images in 5 folders so far"));
}

// A host's own store, of which nothing is on the disk: two classes of one image each, and a link to one of a third.
class ImageStore : public FaultFileSystem {
 public:
  // has_top: that above "store:" is "store:"; else "store:/.." is one name among others.
  explicit ImageStore(bool has_top = true)
      : FaultFileSystem(PosixFileSystem(), MakeTempDir("store")), has_top_(has_top) {}

  // Calls so far; `act` runs in the one of that number.
  int calls_of_the_scan() const { return calls_; }
  void ActAt(int call, std::function<void()> act) {
    act_at_ = call;
    act_ = std::move(act);
  }

  absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& directory) override {
    Count();
    const auto found = folders_.find(directory);
    if (found == folders_.end()) return absl::NotFoundError(directory + ": is not in the store");
    return found->second;
  }
  bool IsDirectory(const std::string& path) override {
    Count();
    return folders_.count(path) > 0;
  }
  absl::StatusOr<std::string> Identity(const std::string& path) override {
    Count();
    if (calls_ > 10000) return absl::ResourceExhaustedError("the scan asks for ever");
    return path == "store:/.." && has_top_ ? "store:" : path;
  }

 private:
  using Kind = DirectoryEntry::Kind;

  void Count() {
    if (++calls_ == act_at_) act_();
  }

  const std::map<std::string, std::vector<DirectoryEntry>> folders_ = {
      {"store:", {{"a", Kind::kDirectory}, {"b", Kind::kDirectory}, {"c", Kind::kLink}, {"x.jpg", Kind::kLink}}},
      {"store:/a", {{"1.jpg", Kind::kOther}}},
      {"store:/b", {{"2.jpg", Kind::kLink}, {"below", Kind::kDirectory}}},
      {"store:/b/below", {{"3.jpg", Kind::kOther}}},
      {"store:/c", {{"4.jpg", Kind::kOther}}}};
  const bool has_top_;
  int calls_ = 0;
  int act_at_ = 0;
  std::function<void()> act_;
};

TEST(ImageFolder, FileSystemOfAHost_IsTheOneThatIsScanned) {
  ImageStore store;
  ASSERT_OK_AND_ASSIGN(const ImageFolder scanned, ScanImageFolder("store:", {&store}));
  EXPECT_THAT(scanned.classes, ElementsAre("a", "b", "c"));
  EXPECT_THAT(PathsBelow("store:", scanned), ElementsAre("a/1.jpg", "b/2.jpg", "b/below/3.jpg", "c/4.jpg"));
  EXPECT_THAT(scanned.passed_over, ElementsAre("1 image beside the class folders: x.jpg"));
  EXPECT_THAT(ScanImageFolder("store:/none", {&store}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("is not in the store")));
  ImageStore without_top(/*has_top=*/false);
  EXPECT_OK(ScanImageFolder("store:", {&without_top}));
}

// Whenever the stop comes, three more calls at most are made: identities that are asked for before the next folder.
TEST(ImageFolder, StopDuringAScan_EndsItSoon) {
  ImageStore whole;
  ASSERT_OK(ScanImageFolder("store:", {&whole}));
  for (int call = 1; call < whole.calls_of_the_scan(); ++call) {  // after the last one the scan is done
    ImageStore store;
    StopToken stop;
    store.ActAt(call, [&stop] { stop.Request(kStopTerminate); });
    EXPECT_THAT(ScanImageFolder("store:", {&store, &stop}),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("the scan for images was stopped at store:")))
        << call;
    EXPECT_LE(store.calls_of_the_scan(), call + 3) << call;
  }
}

TEST(ImageFolder, StopBeforeAScan_LooksAtNothing) {
  ImageStore store;
  StopToken stop;
  stop.Request(kStopUser);
  EXPECT_THAT(ScanImageFolder("store:", {&store, &stop}), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(store.calls_of_the_scan(), 0);
}

TEST(ImageFolder, FolderThatCannotBeListed_EndsTheScanWithItsError) {
  const std::string folder = MakeTree({"a/1.jpg", "b/2.jpg"});
  FaultFileSystem files(PosixFileSystem(), folder);
  files.set_fault_reads(true);
  ASSERT_OK(ScanImageFolder(folder, {&files}));
  for (int call = 1, last = files.calls(); call <= last; ++call) {
    FaultFileSystem faulty(PosixFileSystem(), folder);
    faulty.set_fault_reads(true);
    faulty.FailCall(call, EACCES, FaultFileSystem::Repeat::kFromThenOn);
    EXPECT_THAT(ScanImageFolder(folder, {&faulty}), StatusIs(absl::StatusCode::kPermissionDenied)) << call;
  }
}

TEST(ImageFolder, QuickScan_IsSilent) {
  const std::string folder = MakeTree({"a/1.jpg"});
  const CapturedLog log;
  ASSERT_OK(ScanImageFolder(folder));
  EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace ssl
