// SPDX-License-Identifier: Apache-2.0
//
// What the check says of a folder of images that a training could not use, in the words of the training.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class FolderCheckTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(photos_, "/", name);
    ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, bytes));
  }

  void WriteImages(int count) {
    for (int i = 0; i < count; ++i) {
      Image image;
      std::fill_n(image.Allocate(100, 100, 3), 30000, static_cast<uint8_t>(i));
      Write(absl::StrCat("class", i % 2, "/", i, ".png"), EncodePng(image).value());
    }
  }

  ConfigReport Check(const std::vector<std::string>& tokens) {
    std::vector<std::string> all = {"config=folder", absl::StrCat("config.DATA.TRAIN.DATA_PATHS=[", photos_, "]")};
    all.insert(all.end(), tokens.begin(), tokens.end());
    return CheckTokens(std::move(all));
  }

  const std::string photos_ = MakeTempDir("folder_check");
};

// The first one is read to learn the shape of the batches.
TEST_F(FolderCheckTest, FirstImageThatIsBroken_IsDamageAndNoMistake) {
  WriteImages(20);
  Write("class0/0.png", "no image");
  for (const char* key : {"BROKEN_IMAGES=error", "MAX_BROKEN_FRACTION=0"}) {
    const ConfigReport report = Check({absl::StrCat("config.DATA.TRAIN.", key)});
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    EXPECT_THAT(report.mistakes, IsEmpty()) << key;
    EXPECT_THAT(FormatReport(report),
                AllOf(HasSubstr("damaged data:\n  sample 0 of "),
                      HasSubstr(absl::StrCat("command line:3: config.DATA.TRAIN.", name)), HasSubstr("class0/0.png"),
                      Not(HasSubstr("TRANSFORMS")), HasSubstr("\nright, but the data are damaged\n")))
        << key;
  }
}

TEST_F(FolderCheckTest, OneImage_IsRefusedOnce_ByTheKeyOfTheFolder) {
  WriteImages(1);
  for (const char* engines : {"[estimate,train,evaluate]", "train", "estimate"}) {
    EXPECT_THAT(Check({absl::StrCat("engine_name=", engines)}).mistakes,
                ElementsAre(AllOf(HasSubstr("command line:2: config.DATA.TRAIN.DATA_PATHS: "),
                                  HasSubstr(" has 1 image, expected at least 2"))))
        << engines;
  }
  for (const char* engine : {"check_data", "preview"}) {
    EXPECT_THAT(Check({absl::StrCat("engine_name=", engine)}).mistakes, IsEmpty()) << engine;
  }
}

}  // namespace
}  // namespace ssl
