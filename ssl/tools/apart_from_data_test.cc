// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/apart_from_data.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ApartFromDataTest : public ::testing::Test {
 protected:
  ApartFromDataTest() { std::filesystem::create_directories(photos_ + "/sky"); }

  absl::Status Check(const std::string& run, const std::string& images, const std::string& source = "disk_folder") {
    return CheckApartFromData(
        Parsed(absl::StrCat("config:\n  CHECKPOINT: {DIR: '", run, "'}\n  DATA:\n    TRAIN: {DATA_SOURCES: [", source,
                            "], DATA_PATHS: ['", images, "']}\n    TEST: {DATA_SOURCES: [], DATA_PATHS: []}\n")));
  }

  const std::string folder_ = MakeTempDir("apart");
  const std::string photos_ = folder_ + "/photos";
};

TEST_F(ApartFromDataTest, ADirectoryAmongTheImages_IsRefusedWithTheKeyThatChoosesAnother) {
  for (const std::string& run :
       {photos_ + "/runs/folder", photos_ + "/sky/run", photos_ + "/", photos_ + "/sky/../run"}) {
    EXPECT_THAT(Check(run, photos_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("f.yaml:4: config.DATA.TRAIN.DATA_PATHS: the run directory "), HasSubstr(run),
                               HasSubstr("config.CHECKPOINT.DIR chooses another"), HasSubstr("may be moved"))))
        << run;
  }
}

// A variable of the shell that is not set, perhaps.
TEST_F(ApartFromDataTest, AnEmptyPath_IsNotTheWorkingDirectory) { EXPECT_OK(Check("runs/folder", "")); }

TEST_F(ApartFromDataTest, ALinkThatLeadsThere_IsNoWayAround) {
  std::filesystem::create_directory_symlink(photos_, folder_ + "/link");
  EXPECT_FALSE(Check(folder_ + "/link/run", photos_).ok());
  EXPECT_FALSE(Check(photos_ + "/run", folder_ + "/link").ok());
}

TEST_F(ApartFromDataTest, APlaceElsewhere_OrOneThatScansPassOver_IsFine) {
  for (const std::string& run : {folder_, folder_ + "/runs", photos_ + "2/run", photos_ + "/.runs/folder"}) {
    EXPECT_OK(Check(run, photos_)) << run;
  }
  EXPECT_OK(Check("runs/folder", "photos"));
}

TEST_F(ApartFromDataTest, RelativePaths_AreThoseOfTheWorkingDirectory) {
  EXPECT_FALSE(Check("runs/folder", ".").ok());
  EXPECT_FALSE(Check("./photos/run", std::filesystem::current_path() / "photos").ok());
}

// The test set of an evaluation is read as the training set is, where nothing says otherwise.
TEST_F(ApartFromDataTest, TestImagesAlone_AreFoldersWhereTheTrainingSetIs) {
  const ConfigNode root =
      Parsed(absl::StrCat("config:\n  CHECKPOINT: {DIR: ", photos_,
                          "/run}\n  DATA:\n    TRAIN: {DATA_SOURCES: [disk_folder], DATA_PATHS: [a]}\n",
                          "    TEST: {DATA_SOURCES: [], DATA_PATHS: [", photos_, "]}\n"));
  EXPECT_THAT(CheckApartFromData(root),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("f.yaml:5: config.DATA.TEST.DATA_PATHS: the run directory ")));
}

TEST_F(ApartFromDataTest, OtherSources_AreNoFoldersOfImages) {
  EXPECT_OK(Check(folder_, folder_ + "/images.npy", "npy_images"));
  EXPECT_OK(Check(folder_, folder_ + "/list.txt", "disk_filelist"));
}

}  // namespace
}  // namespace ssl
