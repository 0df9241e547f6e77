// SPDX-License-Identifier: Apache-2.0
//
// Files that were written for VISSL and its machines are right, and --check_config tells what makes them run here.
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/check/tokens_for_here.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WriteFile(const std::string& text) {
  const std::string path = absl::StrCat(MakeTempDir("other_machine"), "/file.yaml");
  std::ofstream(path) << text;
  return path;
}

// Each of these stands in files that ship with VISSL, and none in its defaults.
TEST(FilesOfVisslTest, KeysAndValuesBesideItsDefaults_AreNoMistakes) {
  const std::string path = WriteFile(
      "config:\n"
      "  DATA: {TRAIN: {TARGET_KEY_NAMES: [mask]}}\n"
      "  DISTILLATION:\n"
      "    TEACHER_MODEL:\n"
      "      TRUNK: {NAME: vision_transformer, VISION_TRANSFORMERS: {QKV_BIAS: True}}\n"
      "      SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True}\n"
      "  LOW_SHOT_BENCHMARK: {LOGISTIC_REGRESSION: {LAMBDA: [0.025, 0.1]}}\n"
      "  MODEL:\n"
      "    TRUNK:\n"
      "      CONVIT: {QKV_BIAS: False, QK_SCALE: False}\n"
      "      MOBILE_NET: {TRUNK_ONLY: True}\n"
      "      VISION_TRANSFORMERS: {HYBRID: , CONVIT: {N_GPSA_LAYERS: 0}}\n"
      "    WEIGHTS_INIT: {PARAM_FILE: {a: 1}}\n"
      "  OPTIMIZER: {param_schedulers: {lr: {num_epochs: 100}}}\n");
  const ConfigReport report = CheckTokens({"config=test/supervised_tiny", absl::StrCat("+config=", path)});
  EXPECT_THAT(report.mistakes, IsEmpty()) << FormatReport(report);
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete);
  EXPECT_THAT(report.missing_components,
              Contains(absl::StrCat(path,
                                    ":2: target 'mask' (config.DATA.TRAIN.TARGET_KEY_NAMES): no trunk here takes "
                                    "masks")));
  EXPECT_THAT(CheckTokens({"config=test/supervised_tiny", "config.DATA.TRAIN.TARGET_KEY_NAMES=[maks]"}).mistakes,
              Contains(HasSubstr("TARGET_KEY_NAMES.0 is 'maks'")))
      << "a typo stays one";
}

class OtherMachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterBuiltins(&registries_));
    request_ = MakeRunRequest(registries_);
    request_.search_dirs = {"configs", "."};
  }

  // As of a start from a machine that knows of no other.
  static absl::Status PlaceHere(ConfigNode* root) {
    if (root->FindPath("config.DISTRIBUTED.NUM_NODES")->text() == "1") return absl::OkStatus();
    return absl::UnimplementedError(
        "config.DISTRIBUTED.RUN_ID is \"auto\", expected ... (config.DISTRIBUTED.NUM_NODES)");
  }

  Registries registries_;
  ComposeRequest request_;
};

TEST_F(OtherMachineTest, SeveralNodesAreNoMistake_AndTheTokensThatRunItHereAreTold) {
  request_.tokens = {"config=test/swav_tiny", "config.DISTRIBUTED.NUM_NODES=2",
                     "config.DISTRIBUTED.NUM_PROC_PER_NODE=2"};
  ConfigReport report = CheckConfig(request_, registries_, &PlaceHere);
  EXPECT_THAT(report.mistakes, IsEmpty());
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete);
  EXPECT_EQ(report.missing_nodes,
            "config.DISTRIBUTED.RUN_ID (not set) is \"auto\", expected ... (config.DISTRIBUTED.NUM_NODES)");
  report.tokens_for_here = FindTokensForHere(request_, registries_, &PlaceHere, report);
  EXPECT_THAT(FormatReport(report), HasSubstr("to run it here, add:\n  config.DISTRIBUTED.NUM_NODES=1 "
                                              "config.DISTRIBUTED.NUM_PROC_PER_NODE=1\n"));
  request_.tokens.insert(request_.tokens.end(), report.tokens_for_here.begin(), report.tokens_for_here.end());
  EXPECT_EQ(VerdictOf(CheckConfig(request_, registries_, &PlaceHere)), ConfigVerdict::kRuns);
}

TEST_F(OtherMachineTest, DataThatAreElsewhere_AreReplacedBySyntheticOnes) {
  request_.tokens = {"config=test/swav_tiny", "config.DATA.TRAIN.DATA_SOURCES=[disk_filelist]",
                     "config.DATA.TRAIN.DATASET_NAMES=[imagenet1k_filelist]", "config.DISTRIBUTED.NUM_PROC_PER_NODE=2"};
  const ConfigReport report = CheckConfig(request_, registries_, &PlaceHere);
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete) << FormatReport(report);
  int checks = 0;
  const auto count_and_place = [&checks](ConfigNode* root) {
    ++checks;
    return PlaceHere(root);
  };
  const std::vector<std::string> tokens = FindTokensForHere(request_, registries_, count_and_place, report);
  EXPECT_EQ(checks, 1) << "the data are known to be elsewhere";
  EXPECT_THAT(tokens, Contains("config.DATA.TRAIN.DATA_SOURCES=[synthetic]"));
  EXPECT_THAT(ForShell(tokens), HasSubstr("'config.DATA.TRAIN.DATA_SOURCES=[synthetic]'"))
      << "no pattern of file names";
}

TEST_F(OtherMachineTest, WhatRunsOrLacksMore_GetsNone) {
  for (const char* token : {"config.SEED_VALUE=1", "config.MODEL.TRUNK.NAME=convnext", "config.LOSS.name=swav_los"}) {
    request_.tokens = {"config=test/swav_tiny", token};
    const ConfigReport report = CheckConfig(request_, registries_, &PlaceHere);
    EXPECT_THAT(FindTokensForHere(request_, registries_, &PlaceHere, report), IsEmpty()) << token;
  }
}

}  // namespace
}  // namespace ssl
