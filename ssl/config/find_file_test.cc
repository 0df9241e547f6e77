// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/find_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class FindConfigFileTest : public ::testing::Test {
 protected:
  // Makes a file below the first or second search directory and returns its path.
  std::string Make(const std::string& dir, const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(dir) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "config: {}\n";
    return path.string();
  }

  const std::string first_ = MakeTempDir("first");
  const std::string second_ = MakeTempDir("second");
};

TEST_F(FindConfigFileTest, Names_WithAndWithoutSuffixAndPretrain_AreFound) {
  const std::string path = Make(first_, "configs/config/pretrain/swav/swav_8node.yaml");
  for (const char* name :
       {"pretrain/swav/swav_8node", "pretrain/swav/swav_8node.yaml", "swav/swav_8node", "swav/swav_8node.yaml"}) {
    ASSERT_OK_AND_ASSIGN(const std::string found, FindConfigFile(name, {first_}));
    EXPECT_EQ(found, path) << name;
  }
}

TEST_F(FindConfigFileTest, PlainPaths_AreFoundWithoutSearchDirectories) {
  const std::string path = Make(first_, "mine.yaml");
  ASSERT_OK_AND_ASSIGN(const std::string found, FindConfigFile(path, {}));
  EXPECT_EQ(found, path);
  ASSERT_OK_AND_ASSIGN(const std::string bare, FindConfigFile(absl::StrCat(first_, "/mine"), {}));
  EXPECT_EQ(bare, path);
}

TEST_F(FindConfigFileTest, EarlierSearchDirectory_Wins) {
  Make(second_, "configs/config/a.yaml");
  const std::string path = Make(first_, "configs/config/a.yaml");
  ASSERT_OK_AND_ASSIGN(const std::string found, FindConfigFile("a", {first_, second_}));
  EXPECT_EQ(found, path);
}

TEST_F(FindConfigFileTest, Folder_IsNoFile) {
  Make(first_, "configs/config/swav/a.yaml");
  EXPECT_EQ(FindConfigFile("swav", {first_}).status(),
            absl::InvalidArgumentError(absl::StrCat("config file 'swav' is a directory (", first_,
                                                    "/configs/config/swav); expected a file, such as swav/a")));
}

TEST_F(FindConfigFileTest, FileOfALaterPlace_WinsOverAFolder) {
  Make(first_, "configs/config/swav/a.yaml");
  const std::string path = Make(second_, "configs/config/swav.yaml");
  ASSERT_OK_AND_ASSIGN(const std::string found, FindConfigFile("swav", {first_, second_}));
  EXPECT_EQ(found, path);
}

TEST_F(FindConfigFileTest, FoldersWithManyFilesOrNone_AreDescribed) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) Make(first_, absl::StrCat("many/", name, ".yaml"));
  const std::string many = absl::StrCat(first_, "/many");
  EXPECT_THAT(FindConfigFile(many, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(many, "/d (and 2 more)"))));
  EXPECT_THAT(FindConfigFile(second_, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    HasSubstr("is a directory (" + second_ + "); no file below it")));
}

TEST_F(FindConfigFileTest, EmptyName_IsRefused) {
  EXPECT_THAT(FindConfigFile("", {first_}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is empty")));
}

TEST_F(FindConfigFileTest, MissingFile_NamesThePlacesAndTheNearestFile) {
  Make(first_, "configs/config/pretrain/swav/swav_8node.yaml");
  const std::string places =
      absl::StrCat("neither as a path nor below ", first_, "/configs/config, ", second_, "/configs/config");
  EXPECT_EQ(FindConfigFile("pretrain/swav/swav_8nod.yaml", {first_, second_}).status(),
            absl::NotFoundError(absl::StrCat("config file 'pretrain/swav/swav_8nod.yaml' is not found, ", places,
                                             "; did you mean 'pretrain/swav/swav_8node'?")));
  EXPECT_EQ(FindConfigFile("swav_8node", {first_, second_}).status(),
            absl::NotFoundError(absl::StrCat("config file 'swav_8node' is not found, ", places,
                                             "; did you mean 'pretrain/swav/swav_8node'?")));
  EXPECT_EQ(FindConfigFile("/gone/x", {}).status(), absl::NotFoundError("config file '/gone/x' is not found"));
}

}  // namespace
}  // namespace ssl
