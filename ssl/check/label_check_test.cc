// SPDX-License-Identifier: Apache-2.0
//
// Labels that a loss cannot be trained with: the check and a plain run find them before the first step, alike.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LabelCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterBuiltins(&registries_)); }

  // A class folder of two images for each of `classes`, in the order of the names.
  void WriteImages(const std::string& split, const std::vector<std::string>& classes) {
    Image grey;
    std::fill_n(grey.Allocate(16, 16, 3), grey.size_bytes(), uint8_t{99});
    const std::string png = EncodePng(grey).value();
    for (const std::string& name : classes) {
      const std::string folder = absl::StrCat(directory_, "/", split, "/", name);
      std::filesystem::create_directories(folder);
      for (const char* file : {"/1.png", "/2.png"}) std::ofstream(folder + file) << png;
    }
  }

  // The paths of the images that WriteImages wrote for `split`, in its order. Returns the path of the list.
  std::string WriteList(const std::string& split, const std::vector<std::string>& classes) {
    std::string lines;
    for (const std::string& name : classes) {
      for (const char* file : {"1.png", "2.png"}) {
        absl::StrAppend(&lines, directory_, "/", split, "/", name, "/", file, "\n");
      }
    }
    return WriteFile(split + ".txt", lines);
  }

  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

  // config=test/supervised_tiny, a head of four outputs, with `tokens`.
  ComposeRequest Request(const std::vector<std::string>& tokens) {
    ComposeRequest request = MakeRunRequest(registries_);
    request.tokens = {"config=test/supervised_tiny", absl::StrCat("config.CHECKPOINT.DIR=", directory_, "/run")};
    request.tokens.insert(request.tokens.end(), tokens.begin(), tokens.end());
    request.search_dirs = {"configs", "."};
    return request;
  }

  std::vector<std::string> Mistakes(const std::vector<std::string>& tokens) {
    return CheckConfig(Request(tokens), registries_).mistakes;
  }

  // What opening the run finds, before its first step.
  absl::Status Open(const std::vector<std::string>& tokens) {
    const absl::StatusOr<ComposedConfig> composed = Compose(Request(tokens));
    if (!composed.ok()) return composed.status();
    return Session::Create(*composed->root.Find("config"), registries_, {}).status();
  }

  void ExpectMistake(const std::vector<std::string>& tokens, const ::testing::Matcher<std::string>& message) {
    EXPECT_THAT(Mistakes(tokens), ElementsAre(message));
    const absl::Status opened = Open(tokens);
    EXPECT_EQ(opened.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(opened.message()), message);
    EXPECT_THAT(std::filesystem::exists(directory_ + "/run/checkpoints"), false) << "nothing has begun";
  }

  const std::string directory_ = MakeTempDir("label_check");
  Registries registries_;
};

TEST_F(LabelCheckTest, TrainingImagesWithoutLabels_AreRefused) {
  WriteImages("train", {"ant", "bee", "cat", "dog"});
  const std::string list = WriteList("train", {"ant", "bee", "cat", "dog"});
  for (const char* loss : {"cross_entropy_multiple_output_single_target", "BCEWithLogitsLoss"}) {
    SCOPED_TRACE(loss);
    // As many outputs as images: their indices would pass for labels.
    ExpectMistake({"config.DATA.TRAIN.DATA_SOURCES=[disk_filelist]",
                   absl::StrCat("config.DATA.TRAIN.DATA_PATHS=[", list, "]"), "config.DATA.TRAIN.LABEL_SOURCES=[]",
                   "config.TEST_MODEL=False", "config.MODEL.HEAD.PARAMS=[[mlp, {dims: [32, 8]}]]",
                   "config.DATA.TRAIN.DATA_LIMIT=-1", absl::StrCat("config.LOSS.name=", loss)},
                  AllOf(HasSubstr(absl::StrCat("config.LOSS.name is ", loss, ", which needs labels")),
                        HasSubstr("command line:5: config.DATA.TRAIN.LABEL_SOURCES is []"),
                        HasSubstr(absl::StrCat("config.DATA.TRAIN.DATA_PATHS [", list, "]")),
                        HasSubstr("config.DATA.TRAIN.LABEL_PATHS")));
  }
}

TEST_F(LabelCheckTest, TestImagesWithoutLabels_AreRefused) {
  ExpectMistake({"config.DATA.TEST.RANDOM_SYNTHETIC_LABELS=0"}, HasSubstr("config.DATA.TEST.DATA_SOURCES [synthetic]"));
}

TEST_F(LabelCheckTest, ClassesWithoutAnOutput_AreRefused) {
  WriteImages("train", {"ant", "bee", "cat", "dog", "eel"});
  ExpectMistake({"config.DATA.TRAIN.DATA_SOURCES=[disk_folder]",
                 absl::StrCat("config.DATA.TRAIN.DATA_PATHS=[", directory_, "/train]"),
                 "config.DATA.TRAIN.LABEL_SOURCES=[]", "config.TEST_MODEL=False", "config.DATA.TRAIN.DATA_LIMIT=-1"},
                HasSubstr(absl::StrCat("command line:4: config.DATA.TRAIN.DATA_PATHS [", directory_,
                                       "/train] has label 4 (eel), expected labels below 4, the outputs of "
                                       "config.MODEL.HEAD.PARAMS (")));
}

TEST_F(LabelCheckTest, MixedTargetsOfOtherClassesThanTheHeadHas_AreRefused) {
  ExpectMistake({"config.DATA.TRAIN.COLLATE_FUNCTION=cutmixup_collator", "config.TEST_MODEL=False"},
                AllOf(HasSubstr("command line:3: config.DATA.TRAIN.COLLATE_FUNCTION cutmixup_collator makes targets of "
                                "1000 classes, expected 4, the outputs of config.MODEL.HEAD.PARAMS ("),
                      HasSubstr("config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS.num_classes")));
}

TEST_F(LabelCheckTest, ClassesOfTheTestSetWithoutAnOutput_AreRefused) {
  const std::string labels = WriteFile("test_labels.txt", "0\n1\n2\n3\n4\n0\n1\n2\n3\n0\n");
  const std::vector<std::string> tokens = {"config.DATA.TEST.DATA_LIMIT=10",
                                           "config.DATA.TEST.LABEL_SOURCES=[disk_filelist]",
                                           absl::StrCat("config.DATA.TEST.LABEL_PATHS=[", labels, "]")};
  ExpectMistake(tokens, HasSubstr(absl::StrCat("command line:5: config.DATA.TEST.LABEL_PATHS [", labels,
                                               "] has label 4, expected labels below 4")));
  std::vector<std::string> ignoring = tokens;
  ignoring.push_back("config.LOSS.cross_entropy_multiple_output_single_target.ignore_index=4");
  EXPECT_THAT(Mistakes(ignoring), IsEmpty());
  EXPECT_OK(Open(ignoring));
}

// Beside other mistakes, with which no session is opened.
TEST_F(LabelCheckTest, LabelsComeWithTheRest) {
  const std::vector<std::string> mistakes =
      Mistakes({"config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=9", "config.OPTIMIZER.name=sdg"});
  EXPECT_THAT(mistakes, UnorderedElementsAre(HasSubstr("has label 8, expected labels below 4"), HasSubstr("'sdg'")));
}

TEST_F(LabelCheckTest, LabelsOnlyByRequest_AreIndices) {
  EXPECT_THAT(Mistakes({"config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=0", "config.DATA.TRAIN.LABEL_TYPE=sample_index",
                        "config.TEST_MODEL=False", "config.MODEL.HEAD.PARAMS=[[mlp, {dims: [32, 80]}]]"}),
              IsEmpty());
}

TEST_F(LabelCheckTest, TrainingWithoutALossOfLabels_NeedsNone) {
  ComposeRequest request = Request({"config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=0", "engine_name=train"});
  request.tokens.front() = "config=test/swav_tiny";
  EXPECT_THAT(CheckConfig(request, registries_).mistakes, IsEmpty());
}

}  // namespace
}  // namespace ssl
