// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/key_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ConfigNode Defaults() {
  ConfigNode root = Parsed(
      "engine_name: train\n"
      "config:\n"
      "  LOSS: {name: '', swav_loss: {temperature: 0.1, sinkhorn: {num_iters: 3}}}\n"
      "  TRANSFORMS: [{name: x}]\n"
      "  REGNET: {}\n"
      "  HOOKS: {PERF_STATS: {MONITOR_PERF_STATS: false}}\n"
      "  FREE: {a: 1}\n");
  root.FindMutable("config")->FindMutable("FREE")->set_free_form(true);
  return root;
}

KeyProblems Check(absl::string_view overlay) {
  KeyProblems problems;
  CheckKeys(Defaults(), Parsed(overlay), "", Defaults(), &problems);
  return problems;
}

TEST(CheckKeysTest, KnownKeys_GiveNoProblem) {
  const KeyProblems problems = Check("config: {LOSS: {swav_loss: {temperature: 1}}}\n");
  EXPECT_THAT(problems.unknown_keys, IsEmpty());
  EXPECT_THAT(problems.wrong_kinds, IsEmpty());
}

TEST(CheckKeysTest, UnknownKeys_AreListedWithTheirPlaceAndTheNearestName) {
  EXPECT_THAT(Check("engine: train\n"
                    "config:\n"
                    "  LOSS:\n"
                    "    swav_loss: {tempreture: 1}\n"
                    "    zzz: 1\n"
                    "  MONITOR_PERF_STATS: true\n"
                    "TRANSFORMS: []\n")
                  .unknown_keys,
              ElementsAre("f.yaml:1: unknown key 'engine'; did you mean 'engine_name'?",
                          "f.yaml:4: unknown key 'config.LOSS.swav_loss.tempreture'"
                          "; did you mean 'config.LOSS.swav_loss.temperature'?",
                          "f.yaml:5: unknown key 'config.LOSS.zzz'",
                          "f.yaml:6: unknown key 'config.MONITOR_PERF_STATS'"
                          "; did you mean 'config.HOOKS.PERF_STATS.MONITOR_PERF_STATS'?",
                          "f.yaml:7: unknown key 'TRANSFORMS'; did you mean 'config.TRANSFORMS'?"));
}

TEST(CheckKeysTest, BelowListsFreeFormAndEmptyMaps_NothingIsChecked) {
  EXPECT_THAT(Check("config: {TRANSFORMS: [{p: 1}], REGNET: {w_a: 1}, FREE: {b: {c: 1}}}\n").unknown_keys, IsEmpty());
}

TEST(CheckKeysTest, ValueForASection_IsAWrongKind_NullIsNot) {
  const KeyProblems problems = Check("config:\n  LOSS: swav\n  HOOKS: [a]\n");
  EXPECT_THAT(problems.wrong_kinds, ElementsAre("f.yaml:2: config.LOSS is 'swav', expected a map of name, swav_loss",
                                                "f.yaml:3: config.HOOKS is a list, expected a map of PERF_STATS"));
  EXPECT_THAT(Check("config:\n  LOSS:\n").wrong_kinds, IsEmpty());
}

TEST(CheckKeysTest, UnknownKeysBeyondTheLimit_AreCounted) {
  std::string text;
  for (size_t i = 0; i < kMaxListedKeys + 7; ++i) absl::StrAppend(&text, "k", i, ": 1\n");
  const KeyProblems problems = Check(text);
  EXPECT_EQ(problems.unknown_keys.size(), kMaxListedKeys);
  EXPECT_EQ(problems.unlisted_keys, 7);
}

TEST(CheckKeysTest, ACheckOfTheFile_ListsMore) {
  std::string text;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&text, "k", i, ": 1\n");
  KeyProblems problems;
  problems.max_listed_keys = kMaxListedKeysOfCheck;
  CheckKeys(Defaults(), Parsed(text), "", Defaults(), &problems);
  EXPECT_EQ(problems.unknown_keys.size(), 200u);
  EXPECT_EQ(problems.unlisted_keys, 0);
}

TEST(HasEmptyPartTest, SeesEveryPlace) {
  for (const char* path : {"", ".", "A.", ".A", "A..B"}) EXPECT_TRUE(HasEmptyPart(path)) << path;
  for (const char* path : {"A", "A.B", "A.0.b"}) EXPECT_FALSE(HasEmptyPart(path)) << path;
}

TEST(HasKeyTest, WalksMapsListsAndEverythingBelowFreeForm) {
  const ConfigNode root = Defaults();
  for (const char* path :
       {"config", "config.LOSS.name", "config.TRANSFORMS.0.name", "config.FREE", "config.FREE.x.y"}) {
    EXPECT_TRUE(HasKey(root, path)) << path;
  }
  for (const char* path : {"x", "config.LOSS.x", "config.TRANSFORMS.1", "config.REGNET.x"}) {
    EXPECT_FALSE(HasKey(root, path)) << path;
  }
}

TEST(UnknownKeyTest, WrongPartInTheMiddle_IsReplaced) {
  EXPECT_EQ(UnknownKey("config.LOSSS.swav_loss.temperature", Defaults()),
            "unknown key 'config.LOSSS.swav_loss.temperature'"
            "; did you mean 'config.LOSS.swav_loss.temperature'?");
  EXPECT_EQ(UnknownKey("config.LOSSS.other", Defaults()),
            "unknown key 'config.LOSSS.other'; did you mean 'config.LOSS'?");
}

ConfigNode Splits() {
  return Parsed(
      "config:\n"
      "  CACHE: {DATA_PATHS: []}\n"
      "  DATA:\n"
      "    TEST: {CACHE_BYTES: 1, DATA_PATHS: [], name: x}\n"
      "    TRAIN: {CACHE_BYTES: 1, DATA_PATHS: [], name: x}\n"
      "  TRAINER: {name: x}\n"
      "  LOSS: {name: x}\n");
}

TEST(UnknownKeyTest, AForgottenBeginning_IsThatOfTheSameLastParts) {
  EXPECT_EQ(UnknownKey("DATA.TRAIN.DATA_PATHS", Splits()),
            "unknown key 'DATA.TRAIN.DATA_PATHS'; did you mean 'config.DATA.TRAIN.DATA_PATHS'?");
  EXPECT_EQ(UnknownKey("DATA.TRAIN.DATA_PATH", Splits()),
            "unknown key 'DATA.TRAIN.DATA_PATH'; did you mean 'config.DATA.TRAIN.DATA_PATHS'?");
  EXPECT_EQ(UnknownKey("config.TRAIN.DATA_PATHS", Splits()),
            "unknown key 'config.TRAIN.DATA_PATHS'; did you mean 'config.DATA.TRAIN.DATA_PATHS'?");
}

TEST(UnknownKeyTest, EveryWrongPart_IsReplaced) {
  EXPECT_EQ(UnknownKey("config.data.train.data_paths", Splits()),
            "unknown key 'config.data.train.data_paths'; did you mean 'config.DATA.TRAIN.DATA_PATHS'?");
}

TEST(UnknownKeyTest, AFewKeysThatMayBeMeant_AreAllNamed_AndOfManyNone) {
  EXPECT_EQ(UnknownKey("config.CACHE_BYTES", Splits()),
            "unknown key 'config.CACHE_BYTES'"
            "; did you mean 'config.DATA.TEST.CACHE_BYTES' or 'config.DATA.TRAIN.CACHE_BYTES'?");
  EXPECT_EQ(UnknownKey("config.name", Splits()), "unknown key 'config.name'");
}

TEST(UnknownKeyTest, ASectionThatIsMeant_ComesWithItsKeys) {
  EXPECT_EQ(UnknownKey("config.LOSS.TRAINER", Splits()),
            "unknown key 'config.LOSS.TRAINER'; did you mean 'config.TRAINER', a map of name?");
}

}  // namespace
}  // namespace ssl
