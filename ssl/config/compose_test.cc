// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/compose.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ComposeTest : public ::testing::Test {
 protected:
  ComposeTest() {
    absl::StatusOr<ConfigNode> defaults = ParseYaml(
        "engine_name: train\n"
        "node_id: 0\n"
        "config:\n"
        "  OPTIMIZER: {name: sgd, num_epochs: 90, betas: [0.9, 0.95]}\n"
        "  LOSS: {name: '', swav_loss: {temperature: 0.1}}\n"
        "  PARAMS: {}\n"
        "  LIST: [{a: 1}, {a: 2}]\n"
        "  ALLOW_UNKNOWN_KEYS: false\n",
        "defaults", nullptr);
    EXPECT_OK(defaults);
    request_.defaults = *std::move(defaults);
    request_.defaults.FindMutable("config")->FindMutable("PARAMS")->set_free_form(true);
    request_.search_dirs = {dir_};
  }

  // The path of a new file below configs/config.
  std::string Make(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(dir_) / "configs/config" / (name + ".yaml");
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  absl::StatusOr<ComposedConfig> Run(std::vector<std::string> tokens) {
    request_.tokens = std::move(tokens);
    return Compose(request_);
  }

  // The text of a value after composing.
  std::string Get(std::vector<std::string> tokens, absl::string_view path) {
    const absl::StatusOr<ComposedConfig> composed = Run(std::move(tokens));
    if (!composed.ok()) return composed.status().ToString();
    const ConfigNode* node = composed->root.FindPath(path);
    return node == nullptr ? absl::StrCat("no ", path) : WriteYaml(*node);
  }

  std::string ErrorOf(std::vector<std::string> tokens) {
    const absl::Status status = Run(std::move(tokens)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const std::string dir_ = MakeTempDir("compose");
  ComposeRequest request_;
};

TEST_F(ComposeTest, NoTokens_GiveTheDefaults) {
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({}));
  EXPECT_EQ(composed.root, request_.defaults);
  EXPECT_THAT(composed.warnings, IsEmpty());
  EXPECT_THAT(composed.files, IsEmpty());
}

TEST_F(ComposeTest, Files_MergeInTheOrderOfTheirTokens) {
  const std::string base = Make("pretrain/swav/base",
                                "# @package _global_\nengine_name: extract_features\n"
                                "config: {OPTIMIZER: {name: adamw, num_epochs: 1}}\n");
  const std::string group = Make("pretrain/swav/epochs/ep2", "config: {OPTIMIZER: {num_epochs: 2}}\n");
  const std::string last = Make("ep3", "config: {OPTIMIZER: {betas: [0.5]}}\n");
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed,
                       Run({"config=pretrain/swav/base", "+config/pretrain/swav/epochs=ep2", "+config=ep3.yaml"}));
  EXPECT_THAT(composed.files, ElementsAre(base, group, last));
  EXPECT_EQ(composed.root.Find("engine_name")->text(), "extract_features");
  EXPECT_EQ(WriteYaml(*composed.root.FindPath("config.OPTIMIZER")), "name: adamw\nnum_epochs: 2\nbetas: [0.5]\n");
  EXPECT_EQ(composed.root.FindPath("config.OPTIMIZER.num_epochs")->location().ToString(), absl::StrCat(group, ":1"));
}

TEST_F(ComposeTest, LaterFile_WinsInTheOtherOrderToo) {
  Make("a", "config: {OPTIMIZER: {num_epochs: 1}}\n");
  Make("g/b", "config: {OPTIMIZER: {num_epochs: 2}}\n");
  EXPECT_EQ(Get({"config=a", "+config/g=b"}, "config.OPTIMIZER.num_epochs"), "2\n");
  EXPECT_EQ(Get({"+config/g=b", "config=a"}, "config.OPTIMIZER.num_epochs"), "1\n");
}

TEST_F(ComposeTest, LaterValue_Wins_AndEveryValueWinsOverFiles) {
  Make("a", "config: {OPTIMIZER: {num_epochs: 1}}\n");
  const std::string path = "config.OPTIMIZER.num_epochs";
  EXPECT_EQ(Get({"config=a", path + "=5", path + "=6"}, path), "6\n");
  EXPECT_EQ(Get({path + "=6", path + "=5", "config=a"}, path), "5\n");
}

TEST_F(ComposeTest, Values_AreReadAsPeopleTypeThem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"adamw", "adamw\n"},
      {"1e-5", "1e-5\n"},
      {"null", "null\n"},
      {"~", "null\n"},
      {"\"null\"", "\"null\"\n"},
      {"'a b'", "\"a b\"\n"},
      {"", "\"\"\n"},
      {"[1, x,]", "[1, x]\n"},
      {"[[/a/b,\"c d\"],null]", "[[/a/b, \"c d\"], null]\n"},
      {"a=b: c #d", "\"a=b: c #d\"\n"},
      {"- a", "\"- a\"\n"},
      {"http://x:1/y", "\"http://x:1/y\"\n"},
      {"{a: {b: 1}}", "a:\n  b: 1\n"}};
  for (const auto& [value, expected] : cases) {
    EXPECT_EQ(Get({"config.OPTIMIZER.name=" + value}, "config.OPTIMIZER.name"), expected);
  }
}

TEST_F(ComposeTest, BooleansAndNumbers_ConvertInEveryNotation) {
  for (const char* text : {"True", "true", "TRUE", "tRuE", "\"true\""}) {
    ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({absl::StrCat("config.OPTIMIZER.name=", text)}));
    ASSERT_OK_AND_ASSIGN(const bool value, composed.root.FindPath("config.OPTIMIZER.name")->AsBool());
    EXPECT_TRUE(value) << text;
  }
  for (const char* text : {"1e-4", "0.0001", ".0001", "'1e-4'"}) {
    ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({absl::StrCat("config.OPTIMIZER.name=", text)}));
    ASSERT_OK_AND_ASSIGN(const double value, composed.root.FindPath("config.OPTIMIZER.name")->AsDouble());
    EXPECT_EQ(value, 1e-4) << text;
  }
}

TEST_F(ComposeTest, BaseFile_IsFoundWithAndWithoutSuffixBelowEverySearchDirectoryAndAsAPath) {
  const std::string path = Make("g/a", "config: {OPTIMIZER: {num_epochs: 7}}\n");
  request_.search_dirs = {absl::StrCat(dir_, "/nowhere"), dir_};
  for (const std::string& name : {std::string("g/a"), std::string("g/a.yaml"), path, path.substr(0, path.size() - 5)}) {
    EXPECT_EQ(Get({"config=" + name}, "config.OPTIMIZER.num_epochs"), "7\n") << name;
  }
  EXPECT_EQ(Get({"+config/g=a.yaml"}, "config.OPTIMIZER.num_epochs"), "7\n");
}

TEST_F(ComposeTest, Value_KnowsItsToken) {
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({"node_id=1", "config.OPTIMIZER.betas=[0.5]"}));
  EXPECT_EQ(composed.root.FindPath("config.OPTIMIZER.betas.0")->location().ToString(), "command line:2");
  EXPECT_EQ(composed.root.FindPath("node_id")->location().ToString(), "command line:1");
}

TEST_F(ComposeTest, RootKeys_AreSet) {
  EXPECT_EQ(Get({"engine_name=knn"}, "engine_name"), "knn\n");
  EXPECT_EQ(ErrorOf({"engine_nam=knn"}), "command line: unknown key 'engine_nam'; did you mean 'engine_name'?");
}

TEST_F(ComposeTest, MapValue_Merges_ListIndex_Replaces) {
  EXPECT_EQ(Get({"config.OPTIMIZER={num_epochs: 3}"}, "config.OPTIMIZER"),
            "name: sgd\nnum_epochs: 3\nbetas: [0.9, 0.95]\n");
  EXPECT_EQ(Get({"config.LIST.1.a=7"}, "config.LIST"), "- a: 1\n- a: 7\n");
}

TEST_F(ComposeTest, Plus_AddsKeys_AndMayMeetPresentOnes) {
  EXPECT_EQ(Get({"+config.NEW.A.B=1"}, "config.NEW"), "A:\n  B: 1\n");
  EXPECT_EQ(Get({"+config.OPTIMIZER.name=lars"}, "config.OPTIMIZER.name"), "lars\n");
  EXPECT_EQ(Get({"+config.NEW=1", "config.NEW=2"}, "config.NEW"), "2\n");
  EXPECT_EQ(Get({"+config.LOSS={dino: {a: 1}}"}, "config.LOSS.dino.a"), "1\n");
}

TEST_F(ComposeTest, KeyOfAFile_AndKeysBelowFreeForm_MayBeSet) {
  Make("a", "config: {OWN: {x: 1}}\n");
  EXPECT_EQ(Get({"config=a", "config.OWN.x=2", "config.ALLOW_UNKNOWN_KEYS=True"}, "config.OWN.x"), "2\n");
  EXPECT_EQ(Get({"config.PARAMS.deep.key=2"}, "config.PARAMS.deep.key"), "2\n");
}

TEST_F(ComposeTest, NullSection_GoesBackToItsDefaults) {
  Make("a", "config:\n  OPTIMIZER: {name: lars}\n");
  Make("b", "config:\n  OPTIMIZER:\n  LOSS:\n    swav_loss: null\n");
  EXPECT_EQ(Get({"config=a", "+config=b"}, "config.OPTIMIZER.name"), "sgd\n");
  EXPECT_EQ(Get({"config=b"}, "config.LOSS.swav_loss.temperature"), "0.1\n");
  EXPECT_EQ(Get({"config.OPTIMIZER=null"}, "config.OPTIMIZER.num_epochs"), "90\n");
  EXPECT_EQ(Get({"config=b", "config.OPTIMIZER.num_epochs=4"}, "config.OPTIMIZER.num_epochs"), "4\n");
}

TEST_F(ComposeTest, UnknownKeysOfFiles_AreErrors) {
  const std::string path = Make("a", "config:\n  OPTIMISER: {num_epochs: 1}\n");
  EXPECT_EQ(ErrorOf({"config=a"}),
            absl::StrCat(path, ":2: unknown key 'config.OPTIMISER'; did you mean 'config.OPTIMIZER'?"));
}

TEST_F(ComposeTest, UnknownKeysOfFiles_AreWarningsWhereTheyAreAllowed) {
  const std::string path = Make("a", "config:\n  OPTIMISER: {num_epochs: 1}\n  ZZ: 1\n");
  const std::string typo = absl::StrCat(path, ":2: unknown key 'config.OPTIMISER'; did you mean 'config.OPTIMIZER'?");
  const std::string other =
      absl::StrCat(path, ":3: unknown key 'config.ZZ'; config.ALLOW_UNKNOWN_KEYS=True makes such keys warnings");
  EXPECT_EQ(ErrorOf({"config=a"}), absl::StrCat(typo, "\n", other));
  Make("b", "config: {ALLOW_UNKNOWN_KEYS: True}\n");
  for (const char* allow : {"config.ALLOW_UNKNOWN_KEYS=True", "+config=b"}) {
    ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({"config=a", allow}));
    EXPECT_THAT(composed.warnings, ElementsAre(typo, other));
    EXPECT_EQ(composed.root.FindPath("config.OPTIMISER.num_epochs")->text(), "1");
  }
  EXPECT_THAT(ErrorOf({"config=a", "+config=b", "config.ALLOW_UNKNOWN_KEYS=False"}), HasSubstr("'config.ZZ'"));
}

// What a run writes down, it reads again.
TEST_F(ComposeTest, KeyAddedOnTheCommandLine_LetsTheTreeBeReadAgain) {
  for (const char* token : {"+config.NEW.A=1", "+config.LOSS={dino: {a: 1}}"}) {
    ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({token}));
    Make("again", WriteYaml(composed.root));
    ASSERT_OK_AND_ASSIGN(const ComposedConfig again, Run({"config=again"}));
    EXPECT_EQ(again.root, composed.root) << token;
  }
  EXPECT_EQ(Get({"+config.OPTIMIZER.name=lars", "+config.PARAMS.own=1"}, "config.ALLOW_UNKNOWN_KEYS"), "false\n");
}

TEST_F(ComposeTest, EveryUnknownKeyOfEveryFile_IsNamedOnRequest) {
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "OPTIMIZR", i, ": 1\n");
  const std::string many = Make("many", text);
  const std::string typo = Make("typo", "config:\n  LOSS: {swav_loss: {\n    tempreture: 1}}\n");
  request_.lists_all_unknown_keys = true;
  std::string expected;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&expected, many, ":", i + 1, ": unknown key 'OPTIMIZR", i, "'\n");
  absl::StrAppend(
      &expected, typo,
      ":3: unknown key 'config.LOSS.swav_loss.tempreture'; did you mean 'config.LOSS.swav_loss.temperature'?");
  EXPECT_EQ(ErrorOf({"config=many", "+config=typo"}), expected);
}

TEST_F(ComposeTest, FileOfAnotherProgram_DoesNotFloodTheErrors) {
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "key", i, ": 1\n");
  const std::string path = Make("other", text);
  const std::vector<std::string> errors = absl::StrSplit(ErrorOf({"config=other"}), '\n');
  ASSERT_EQ(errors.size(), 51u);
  EXPECT_EQ(errors.back(), absl::StrCat(path, ": 950 further unknown keys"));
}

// United Perception's files have their hooks there.
TEST_F(ComposeTest, SectionBesideConfig_IsRefused) {
  const std::string path = Make("a", "LOSS: {name: x}\nconfig: {}\n");
  EXPECT_EQ(ErrorOf({"config=a"}),
            absl::StrCat(path, ":1: unknown key 'LOSS'; did you mean 'config.LOSS', a map of name, swav_loss?"));
}

TEST_F(ComposeTest, KeysThatStandTwice_AreErrorsWithBothLines) {
  const std::string a = Make("a", "config:\n  LOSS:\n    name: x\n    name: y\n");
  const std::string b = Make("b", "config:\n  PARAMS: {x: 1}\nconfig: {}\n");
  EXPECT_EQ(ErrorOf({"config=a", "+config=b", "config.PARAMS={k: 1, k: 2}"}),
            absl::StrCat(a, ":4: key 'name' stands twice, first in line 3\n", b,
                         ":3: key 'config' stands twice, first in line 1\n",
                         "command line: value of config.PARAMS:1: key 'k' stands twice, first in line 1"));
}

TEST_F(ComposeTest, ListThatAFragmentOfTheSameGroupReplaces_IsWarnedOf) {
  const std::string a = Make("g/a", "config: {LIST: [{a: 3}], PARAMS: {x.y: [1]}}\n");
  const std::string b = Make("g/b", "config:\n  LIST: []\n  PARAMS: {x.y: [2]}\n");
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({"+config/g=a", "+config/g=b", "+config=g/a"}));
  EXPECT_THAT(composed.warnings, ElementsAre(b + ":2: config.LIST replaces that of " + a + ":1: lists are not joined"));
}

TEST_F(ComposeTest, SettingsOfHydra_AreIgnoredWithAWarning) {
  const std::string path = Make("a", "config: {}\nhydra: {verbose: true}\nengine_name: knn\n");
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({"config=a"}));
  EXPECT_THAT(composed.warnings, ElementsAre(path + ":2: 'hydra' has no effect here"));
  EXPECT_EQ(composed.root.Find("hydra"), nullptr);
  EXPECT_EQ(composed.root.Find("engine_name")->text(), "knn");

  ASSERT_OK_AND_ASSIGN(const ComposedConfig typed, Run({"hydra.verbose=true", "+hydra/launcher=x"}));
  EXPECT_THAT(typed.warnings, ElementsAre("command line: 'hydra.verbose=true' has no effect here",
                                          "command line: '+hydra/launcher=x' has no effect here"));
  EXPECT_EQ(typed.root, request_.defaults);
}

TEST_F(ComposeTest, TokensThatAreNoOverride_AreNamed) {
  for (const char* token : {"verbose", "=3", "+", "--flag", ""}) {
    EXPECT_EQ(ErrorOf({token}), absl::StrCat("command line: '", token, "' is no override, expected KEY=VALUE"));
  }
  EXPECT_EQ(ErrorOf({"config/pretrain/swav=x"}),
            "command line: 'config/pretrain/swav=x' lacks its plus, expected "
            "'+config/pretrain/swav=x'");
  Make("a", "config: {}\n");
  EXPECT_EQ(ErrorOf({"config=a", "config=a"}), "command line: 'config=a' is a second base file, expected '+config=a'");
}

TEST_F(ComposeTest, KeysThatCannotBeSet_AreNamed) {
  EXPECT_EQ(ErrorOf({"+config..x=1"}),
            "command line: key 'config..x' has an empty part between its dots, expected 'config.x'");
  EXPECT_EQ(ErrorOf({"config..OPTIMIZER.=1"}),
            "command line: key 'config..OPTIMIZER.' has an empty part between its dots, expected 'config.OPTIMIZER'");
  EXPECT_EQ(ErrorOf({"+config.OPTIMIZER.name.x=1"}),
            "command line: key 'config.OPTIMIZER.name.x' cannot be set: config.OPTIMIZER.name "
            "is 'sgd' (defaults:4)");
  EXPECT_EQ(ErrorOf({"+config.LIST.2=1"}),
            "command line: key 'config.LIST.2' cannot be set: config.LIST is a list with entries 0 to 1 (defaults:7)");
  EXPECT_EQ(ErrorOf({"+LIST=[1]"}), "command line: unknown key 'LIST'; did you mean 'config.LIST'?");
  EXPECT_EQ(ErrorOf({"config.LIST.2=1"}), "command line: unknown key 'config.LIST.2'");
  std::string deep = "+config";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_EQ(ErrorOf({deep + "=1"}),
            "command line: key 'config.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a...' has 100001 parts, "
            "expected at most 32");
}

TEST_F(ComposeTest, ValueThatIsNoYaml_NamesItsKey) {
  EXPECT_EQ(ErrorOf({"config.OPTIMIZER.name=\"a"}),
            "command line: value of config.OPTIMIZER.name:1: no valid YAML: illegal EOF in scalar");
  EXPECT_THAT(ErrorOf({"config.OPTIMIZER.betas=[1,2"}), HasSubstr("command line: value of config.OPTIMIZER.betas:1: "));
}

TEST_F(ComposeTest, BrokenFiles_AreNamed) {
  const std::string list = Make("list", "[1]\n");
  const std::string empty = Make("empty", "");
  const std::string broken = Make("broken", "config:\n  a: b: c\n");
  const std::string large = Make("large", std::string(3 << 20, '#'));
  EXPECT_EQ(ErrorOf({"config=list"}), list + ": config file is a list, expected a map with the key 'config'");
  EXPECT_EQ(ErrorOf({"config=empty"}), empty + ": config file is null, expected a map with the key 'config'");
  EXPECT_EQ(ErrorOf({"config=broken"}), broken + ":2: no valid YAML: illegal map value");
  EXPECT_EQ(ErrorOf({"config=large"}), large + ": text has 1048577 bytes, expected at most 1048576");
  EXPECT_EQ(ErrorOf({"config=brokn"}),
            absl::StrCat("command line: config file 'brokn' is not found, neither as a path nor "
                         "below ",
                         dir_, "/configs/config; did you mean 'broken'?"));
}

TEST_F(ComposeTest, FileWithoutConfig_ChangesNothing) {
  Make("a", "config:\n"), Make("b", "{}\n");
  EXPECT_EQ(Get({"config=a", "+config=b"}, "config.OPTIMIZER.num_epochs"), "90\n");
}

TEST_F(ComposeTest, FileWithTensOfThousandsOfKeys_Merges) {
  std::string text = "config:\n  PARAMS:\n";
  for (int i = 0; i < 40000; ++i) absl::StrAppend(&text, "    key", i, ": 1\n");
  Make("wide", text);
  ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Run({"config=wide", "+config=wide"}));
  EXPECT_EQ(composed.root.FindPath("config.PARAMS")->entries().size(), 40000u);
  EXPECT_THAT(composed.warnings, IsEmpty());
}

TEST_F(ComposeTest, BinaryHugeAndDeepFiles_AreStatuses) {
  const std::string binary = Make("binary",
                                  "\x7f"
                                  "ELF\x02\x01\x01\xff\xfe");
  EXPECT_EQ(ErrorOf({"config=binary"}), binary + ":1: byte 0x02 is no text, expected UTF-8");
  const std::string scalar = Make("scalar", std::string(1 << 20, 'a'));
  EXPECT_THAT(ErrorOf({"config=scalar"}), HasSubstr("expected a map with the key 'config'"));
  EXPECT_LT(ErrorOf({"config=scalar"}).size(), 1000u);
  std::string text = "config:\n  ";
  for (int i = 0; i < 100000; ++i) text += "- ";
  const std::string deep = Make("deep", text);
  EXPECT_EQ(ErrorOf({"config=deep"}), deep + ":2: document is nested more than 64 levels deep");
}

TEST_F(ComposeTest, WrongKindOfASection_IsReportedOnce) {
  const std::string path = Make("a", "config:\n  OPTIMIZER: [x]\n");
  EXPECT_EQ(ErrorOf({"config=a", "config.OPTIMIZER.num_epochs=3"}),
            path + ":2: config.OPTIMIZER is a list, expected a map of name, num_epochs, betas");
  EXPECT_EQ(ErrorOf({"config.OPTIMIZER=3", "config.OPTIMIZER.num_epochs=3"}),
            "command line:1: config.OPTIMIZER is '3', expected a map of name, num_epochs, betas");
}

TEST_F(ComposeTest, WithProblems_TheRestOfTheTreeIsThere) {
  const std::string path = Make("a", "config: {OPTIMIZER: {num_epochs: 1, nme: x}, LOSS: 3}\n");
  request_.tokens = {"config=a", "config.OPTIMIZER.name=adamw", "config.OPTIMIZR.name=sgd", "config..x=1"};
  std::vector<std::string> problems;
  const ComposedConfig composed = ComposeWithProblems(request_, &problems);
  EXPECT_EQ(problems.size(), 4u);
  EXPECT_EQ(composed.root.FindPath("config.OPTIMIZER.num_epochs")->text(), "1");
  EXPECT_EQ(composed.root.FindPath("config.OPTIMIZER.name")->text(), "adamw");
  EXPECT_EQ(composed.root.FindPath("config.LOSS.swav_loss.temperature")->text(), "0.1");
  EXPECT_THAT(composed.files, ElementsAre(path));
}

TEST_F(ComposeTest, AllProblems_AreReportedAtOnce) {
  const std::string path = Make("a", "config:\n  LOSS: swav\n  OPTIMIZER: [x]\n");
  const std::string strict = Make("g/b", "config: {LOSSS: 1}\n");
  EXPECT_EQ(ErrorOf({"oops", "config=a", "config.OPTIMIZER.num_epoch=3", "+config/g=b", "config.LOSS=3",
                     "config.OPTIMIZER={nam: 1}", "node_id=4"}),
            absl::StrCat("command line: 'oops' is no override, expected KEY=VALUE\n", path,
                         ":2: config.LOSS is 'swav', expected a map of name, swav_loss\n", path,
                         ":3: config.OPTIMIZER is a list, expected a map of name, num_epochs, betas\n", strict,
                         ":1: unknown key 'config.LOSSS'; did you mean 'config.LOSS'?\n",
                         "command line: unknown key 'config.OPTIMIZER.num_epoch'"
                         "; did you mean 'config.OPTIMIZER.num_epochs'?\n"
                         "command line:5: config.LOSS is '3', expected a map of name, swav_loss\n"
                         "command line:6: unknown key 'config.OPTIMIZER.nam'"
                         "; did you mean 'config.OPTIMIZER.name'?"));
}

}  // namespace
}  // namespace ssl
