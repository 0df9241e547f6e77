// SPDX-License-Identifier: Apache-2.0
//
// Hooks are checked as the run would make them, in a directory that is not there.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HookCheckTest : public ::testing::Test {
 protected:
  ConfigReport Check(const std::string& directory, const std::string& hook) {
    return CheckTokens({"config=test/swav_tiny", absl::StrCat("config.CHECKPOINT.DIR=", directory),
                        absl::StrCat("config.hooks=[", hook, "]")});
  }

  const std::string directory_ = absl::StrCat(MakeTempDir("hook_check"), "/run");
};

TEST_F(HookCheckTest, HooksThatWriteIntoTheRunsDirectory_AreRight) {
  for (const char* hook : {"feature_vis", "grad_cam", "profiler", "TorchProfiler", "train_val_logger"}) {
    for (const std::string& directory : {directory_, std::string()}) {
      const ConfigReport report = Check(directory, absl::StrCat("{type: ", hook, "}"));
      EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << hook << "\n" << FormatReport(report);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(HookCheckTest, WhatSuchAHookFindsWrongAtItsStart_IsFound) {
  EXPECT_THAT(Check(directory_, "{type: grad_cam, kwargs: {layer_name: res9}}").mistakes,
              ElementsAre(AllOf(HasSubstr("config.hooks.0.kwargs.layer_name is 'res9', which is no stage"),
                                HasSubstr("; expected one of conv1, res1, "), Not(HasSubstr("hook 'grad_cam': ")))));
  EXPECT_THAT(Check(directory_, "{type: feature_vis, kwargs: {save_dir: ../x}}").mistakes,
              ElementsAre(HasSubstr("save_dir is '../x'")));
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

// The method's hooks are there before those of the list.
TEST_F(HookCheckTest, NameOfAHookOfTheMethod_IsFoundWithItsPlace) {
  EXPECT_THAT(
      Check(directory_, "{type: grad_clipper, name: swav_queue, kwargs: {mode: average}}").mistakes,
      ElementsAre(AllOf(HasSubstr("command line:"), HasSubstr("config.hooks.0.name is 'swav_queue', the name of "
                                                              "another hook"))));
}

TEST_F(HookCheckTest, WrongValueOfAKeyThatSetsOneOfTheRun_IsToldOnce) {
  EXPECT_THAT(Check(directory_, "{type: reload, kwargs: {mini_epoch: two}}").mistakes,
              ElementsAre(HasSubstr("config.hooks.0.kwargs.mini_epoch is 'two', expected an integer of at least 1")));
}

class BlockCheckTest : public ::testing::Test {
 protected:
  ConfigReport Check(const std::string& token) { return CheckTokens({"config=test/swav_tiny", token}); }
};

// Another program's blocks are refused here by the same line as by a run, or do not keep it from running.
TEST_F(BlockCheckTest, BlocksOfAnotherProgram_AreJudgedAsByARun) {
  for (const char* token : {"config.trainer.lr_scheduler.warmup_epochs=1", "config.trainer.optimizer={type: SGD}",
                            "config.saver.pretrain_model=a.pth", "config.saver.resume_model=a.pth"}) {
    const ConfigReport report = Check(token);
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kMistakes) << token << "\n" << FormatReport(report);
    EXPECT_THAT(report.mistakes,
                ElementsAre(AllOf(StartsWith("command line:2: config."), HasSubstr("which has no effect; expected"))));
  }
  for (const char* token : {"config.saver.save_dir=y", "config.saver.results_dir=y", "config.trainer.save_freq=2"}) {
    const ConfigReport report = Check(token);
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << token << "\n" << FormatReport(report);
    EXPECT_EQ(report.config.Find("saver"), nullptr) << token;
  }
}

// They used to be found when the first drawing was made.
TEST_F(HookCheckTest, FoldersInThePlaceOfFiles_AreFound) {
  ASSERT_TRUE(std::filesystem::create_directories(directory_ + "/inner"));
  std::ofstream(directory_ + "/inner/drawings") << "a file";
  for (const char* hook : {"feature_vis", "grad_cam", "crop_images"}) {
    for (const char* name : {"metrics.json", "./metrics.jsonl", "log.txt", "results.json/drawings"}) {
      EXPECT_THAT(Check(directory_, absl::StrCat("{type: ", hook, ", kwargs: {save_dir: ", name, "}}")).mistakes,
                  ElementsAre(AllOf(HasSubstr(absl::StrCat("save_dir is '", name, "', but ")),
                                    HasSubstr(" is a file of the run"))))
          << hook;
    }
    EXPECT_THAT(Check(directory_, absl::StrCat("{type: ", hook, ", kwargs: {save_dir: inner/drawings/deep}}")).mistakes,
                ElementsAre(HasSubstr(
                    absl::StrCat("save_dir is 'inner/drawings/deep', but ", directory_, "/inner/drawings is a file"))));
    EXPECT_THAT(Check(directory_, absl::StrCat("{type: ", hook, ", kwargs: {save_dir: inner}}")).mistakes,
                ElementsAre());
  }
  std::ofstream(directory_ + "/profile") << "a file";
  EXPECT_THAT(
      Check(directory_, "{type: profiler}").mistakes,
      ElementsAre(AllOf(HasSubstr("config.PROFILING.RUNTIME_PROFILING.USE_PROFILER: hook 'profiler' writes into"),
                        HasSubstr(directory_ + "/profile"))));
}

// They used to be found at the end of the first epoch.
TEST_F(HookCheckTest, WhatHasThePlaceOfMetricsJson_IsFound) {
  ASSERT_TRUE(std::filesystem::create_directories(directory_ + "/metrics.json"));
  EXPECT_THAT(Check(directory_, "").mistakes,
              ElementsAre(HasSubstr(absl::StrCat("hook 'phase_metrics' writes a file in whose place is the directory ",
                                                 directory_, "/metrics.json: move it away"))));
  std::filesystem::remove(directory_ + "/metrics.json");
  std::filesystem::create_symlink("elsewhere", directory_ + "/metrics.json");
  EXPECT_THAT(Check(directory_, "").mistakes, ElementsAre(HasSubstr("in whose place is the symbolic link ")));
  std::filesystem::remove(directory_ + "/metrics.json");
  std::ofstream(directory_ + "/metrics.json") << "";
  EXPECT_THAT(Check(directory_, "").mistakes, ElementsAre());
}

}  // namespace
}  // namespace ssl
