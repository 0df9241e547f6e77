// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/unexpanded_text.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/compose.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(UnexpandedText, NamesWhatNothingReplaces_AndThePathThatWasMeant) {
  setenv("HOME", "/people/me", 1);
  setenv("SSL_TEST_SECRET", "secret", 1);
  const std::pair<const char*, const char*> cases[] = {
      {"~/runs/a", "nothing replaces ~ (a shell does, at the beginning of a word alone); expected /people/me/runs/a"},
      {"$HOME/runs", "nothing replaces $HOME (a shell does, outside of single quotes alone); expected /people/me/runs"},
      {"/data/${HOME}/x",
       "nothing replaces ${HOME} (a shell does, outside of single quotes alone); "
       "expected /data//people/me/x"},
      {"${oc.env:HOME}/x", "expected /people/me/x"},
      {"${oc.env:HOME,/tmp}/x", "expected /people/me/x"},
      {"runs/$SSL_TEST_SECRET",
       "nothing replaces $SSL_TEST_SECRET (a shell does, outside of single quotes alone); "
       "expected the value of SSL_TEST_SECRET in its place"},
      {"~other/x",
       "nothing replaces ~other (a shell does, at the beginning of a word alone); expected the whole path"}};
  for (const auto& [path, end] : cases) {
    EXPECT_THAT(UnexpandedIn(path), AllOf(HasSubstr(absl::StrCat("is '", path, "', in which ")), EndsWith(end)));
  }
}

TEST(UnexpandedText, OtherNamesAreFine) {
  for (const char* path : {"", "~", "a~/b", "./~/x", "trunk.*bias$", "$", "$1", "a$(b)", "100$/x", "${open", "file~"}) {
    EXPECT_EQ(UnexpandedIn(path), "") << path;
  }
  // What an earlier start has made goes on.
  const std::string folder = absl::StrCat(MakeTempDir("unexpanded"), "/$HOME");
  EXPECT_NE(UnexpandedIn(folder), "");
  std::filesystem::create_directories(folder);
  EXPECT_EQ(UnexpandedIn(folder), "");
}

// Whatever reads or writes them, and wherever they are set.
TEST(UnexpandedText, ComposeRefusesThemInAllValues) {
  setenv("HOME", "/people/me", 1);
  ComposeRequest request;
  request.defaults = Parsed(
      "engine_name: train\n"
      "config: {CHECKPOINT: {DIR: ''}, EXPORT: {FILES: [], OUTPUT_DIR: '~/of_a_default'}, DATA: {TRAIN: {DATA_PATHS: "
      "[]}}}\n");
  request.defaults.Relocate({});
  EXPECT_OK(Compose(request));
  request.tokens = {"config.CHECKPOINT.DIR=~/runs/a", "config.EXPORT.FILES=[m.pth, ~/m.pth]",
                    "config.DATA.TRAIN.DATA_PATHS=['$HOME/photos']", "config=~/run.yaml"};
  const absl::Status status = Compose(request).status();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("command line:1: config.CHECKPOINT.DIR is '~/runs/a', in which nothing replaces ~ "),
                    HasSubstr("; expected /people/me/runs/a\n"),
                    HasSubstr("command line:2: config.EXPORT.FILES.1 is '~/m.pth'"),
                    HasSubstr("command line:3: config.DATA.TRAIN.DATA_PATHS.0 is '$HOME/photos'"),
                    HasSubstr("command line: config file is '~/run.yaml', in which nothing replaces ~")));
}

}  // namespace
}  // namespace ssl
