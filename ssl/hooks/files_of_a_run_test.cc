// SPDX-License-Identifier: Apache-2.0
//
// Whatever a hook or sink writes into the run's directory, it declares (ComponentOptions::leaves): a run that starts
// anew there removes it.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/component.h"
#include "ssl/core/session.h"
#include "ssl/hooks/testing/tiny_run.h"
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

// Every part that writes files, with the folders that it has by default.
constexpr char kAllThatWrites[] = R"(
  HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: True}, TRAIN_LOGGER: {SUMMARY_WRITER: tensorboard}}
  PROFILING: {START_ITERATION: 4, WARMUP_ITERATIONS: 1, NUM_ITERATIONS: 2, RUNTIME_PROFILING: {USE_PROFILER: True}}
  hooks:
    - {type: crop_images, kwargs: {freq: 5}}
    - {type: feature_vis, kwargs: {freq: 5}}
    - {type: grad_cam, kwargs: {freq: 5}}
)";

std::vector<std::string> Declared() {
  std::vector<std::string> declared;
  const Registries registries = TinyRunRegistries();
  for (const auto* components : {&registries.hook_components, &registries.sink_components}) {
    for (const auto& [name, component] : *components) {
      for (std::string& left : component.make_options()->leaves()) declared.push_back(std::move(left));
    }
  }
  return declared;
}

bool Covers(const std::string& declared, const std::string& file) {
  const bool is_prefix = declared.back() == '*';
  return is_prefix ? absl::StartsWith(file, declared.substr(0, declared.size() - 1)) : file == declared;
}

// Paths below `directory`, of what is neither a checkpoint nor the lock.
std::vector<std::string> FilesOf(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string file = entry.path().string().substr(directory.size() + 1);
    const bool is_of_the_run = file == ".lock" || absl::StartsWith(file, "checkpoints/");
    if (entry.is_regular_file() && !is_of_the_run) files.push_back(file);
  }
  return files;
}

// It used to count as a fault of the disk, or to be found when the first report was written.
TEST(FilesOfARunTest, WhatStandsInTheirPlace_IsAMistakeOfTheirKey) {
  const auto opened = [](const std::string& directory, const std::string& overrides) {
    const auto session = OpenTinyRun("CHECKPOINT: {DIR: " + directory + "}\n" + overrides);
    return session.ok() ? (*session)->Start() : session.status();
  };
  const auto mistake = [](const std::string& key, const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(key), HasSubstr(what + ": move it away")));
  };
  const std::string files = MakeTempDir("files");
  ASSERT_OK(PosixFileSystem().Create(files + "/profile"));
  ASSERT_OK(PosixFileSystem().Create(files + "/tb_logs"));
  EXPECT_THAT(opened(files, "PROFILING: {RUNTIME_PROFILING: {USE_PROFILER: True}}"),
              mistake("test.yaml:2: config.PROFILING.RUNTIME_PROFILING.USE_PROFILER: hook 'profiler' writes into",
                      files + "/profile"));
  EXPECT_THAT(opened(files, "HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: True}}"),
              mistake("test.yaml:2: config.HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD: metric sink", files + "/tb_logs"));
  const std::string folders = MakeTempDir("folders");
  ASSERT_OK(PosixFileSystem().CreateDirectories(folders + "/metrics.jsonl"));
  EXPECT_THAT(opened(folders, "TEST_MODEL: False"), mistake("metric sink 'jsonl'", folders + "/metrics.jsonl"));
  const std::string broken = MakeTempDir("broken");
  ASSERT_OK(PosixFileSystem().CreateDirectories(broken + "/broken_images.json"));
  EXPECT_THAT(opened(broken, "TEST_MODEL: False"), mistake("hook 'broken_images'", broken + "/broken_images.json"));
}

// What a run leaves that reads no image of its list.
std::vector<std::string> FilesOfARunWithoutImages() {
  const std::string list = MakeTempDir("list") + "/images.txt";
  std::string names;
  for (int i = 0; i < 40; ++i) absl::StrAppend(&names, "no/", i, ".png\n");
  EXPECT_OK(WriteFileAtomically(PosixFileSystem(), list, names));
  const auto run = TrainTinyRun(absl::StrCat("DATA: {TRAIN: {DATA_SOURCES: [disk_filelist], DATA_PATHS: ['", list,
                                             "'], DATA_LIMIT: -1, MAX_BROKEN_FRACTION: 1}}"));
  EXPECT_OK(run);
  return run.ok() ? FilesOf(run->directory) : std::vector<std::string>();
}

TEST(FilesOfARunTest, AreDeclaredAndGoWhenARunStartsAnew) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult run, TrainTinyRun(kAllThatWrites));
  std::vector<std::string> files = FilesOf(run.directory);
  const std::vector<std::string> others = FilesOfARunWithoutImages();
  files.insert(files.end(), others.begin(), others.end());
  for (const std::string& file : files) {
    const std::vector<std::string> declared = Declared();
    EXPECT_TRUE(std::any_of(declared.begin(), declared.end(), [&file](const std::string& entry) {
      return Covers(entry, file);
    })) << file;
  }
  for (const std::string& declared : Declared()) {
    EXPECT_TRUE(std::any_of(files.begin(), files.end(),
                            [&declared](const std::string& file) { return Covers(declared, file); }))
        << declared << " is declared, and no run of this test writes it";
  }

  const std::string anew =
      absl::StrCat("CHECKPOINT: {DIR: '", run.directory, "', OVERWRITE_EXISTING: True, AUTO_RESUME: False}");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, OpenTinyRun(anew));
  ASSERT_OK(session->Start());
  EXPECT_THAT(FilesOf(run.directory), IsEmpty());
  EXPECT_THAT(PosixFileSystem().List(run.directory).value(), ElementsAre(".lock", "checkpoints"));
}

}  // namespace
}  // namespace ssl
