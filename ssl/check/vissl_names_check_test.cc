// SPDX-License-Identifier: Apache-2.0
//
// Every transform, collator and sampler that VISSL's files may name: none is taken for a mistake. What this program has
// would run; what it lacks is named as missing.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/config/compose.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/collators/collators.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/vissl/vissl_names.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A transform among others, as it may stand in a file.
struct Setting {
  std::string parameters = "";
  std::string before = "";
  std::string after = ", {name: ToTensor}";
  std::string collator = "default_collate";
};

constexpr char kPatches[] = "{name: Resize, size: [90, 90]}, {name: ToTensor}, ";

// Of those that need more than their name and a ToTensor behind them.
std::map<std::string, Setting> Settings() {
  const std::string permutations = MakeTempDir("permutations") + "/permutations.npy";
  EXPECT_OK(WriteNpy<int64_t>(PosixFileSystem(), permutations, {1, 9}, {8, 7, 6, 5, 4, 3, 2, 1, 0}));
  const std::string normalize = "{name: ToTensor}, {name: Normalize, mean: [0.5], std: [0.5]}, ";
  return {
      {"CenterCrop", {", size: 12"}},
      {"ImgPatchesFromTensor", {"", kPatches, "", "siamese_collator"}},
      {"ImgPil2LabTensor", {"", "", ""}},
      {"ImgPilMultiCropRandomApply", {", transforms: [{name: ImgPilGaussianBlur}], prob: [0.5]"}},
      {"ImgPilToMultiCrop",
       {", total_num_crops: 2, num_crops: [2], size_crops: [12], crop_scales: [[0.3, 1]]", "", ", {name: ToTensor}",
        "multicrop_collator"}},
      {"ImgPilToPatchesAndImage", {"", "", ", {name: ToTensor}", "multicrop_collator"}},
      {"ImgPilToRawTensor", {"", "", ""}},
      {"ImgReplicatePil", {"", "", ", {name: ToTensor}", "simclr_collator"}},
      {"ImgToTensor", {"", "", ""}},
      {"Normalize", {", mean: [0.5], std: [0.5]", "{name: ToTensor}, ", ""}},
      {"OneHotEncode", {", num_classes: 4"}},
      {"RandomCrop", {", size: 12"}},
      {"RandomErasing", {"", normalize, ""}},
      {"RandomResizedCrop", {", size: 12"}},
      {"Resize", {", size: 12"}},
      {"ShuffleImgPatches",
       {absl::StrCat(", perm_file: ", permutations), absl::StrCat(kPatches, "{name: ImgPatchesFromTensor}, "), "",
        "siamese_collator"}},
      {"ToTensor", {"", "", ""}},
  };
}

class VisslNamesCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterBuiltins(&registries_)); }

  // Supervised training without test phases, with further tokens on top.
  ConfigReport Check(const std::vector<std::string>& tokens) const {
    ComposeRequest request = MakeRunRequest(registries_);
    request.tokens = {"config=test/supervised_tiny", "config.TEST_MODEL=False"};
    request.tokens.insert(request.tokens.end(), tokens.begin(), tokens.end());
    request.search_dirs = {"configs", "."};
    return CheckConfig(request, registries_);
  }

  // known: whether this program has `name`, which is a `kind`.
  void Expect(bool known, const std::string& kind, const std::string& name, const ConfigReport& report) const {
    SCOPED_TRACE(absl::StrCat(kind, " ", name));
    EXPECT_THAT(report.mistakes, IsEmpty()) << FormatReport(report);
    EXPECT_EQ(VerdictOf(report), known ? ConfigVerdict::kRuns : ConfigVerdict::kIncomplete) << FormatReport(report);
    if (known) return;
    EXPECT_THAT(report.missing_components, Contains(HasSubstr(absl::StrCat(": ", kind, " '", name, "' (config."))));
  }

  Registries registries_;
};

TEST_F(VisslNamesCheckTest, Transforms) {
  std::map<std::string, Setting> settings = Settings();
  int64_t of_vissl = 0;
  for (const std::string& name : VisslNames("transform")) {
    const Setting& setting = settings[name];
    const bool known = registries_.transforms.Has(name);
    Expect(known, "transform", name,
           Check({absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[", setting.before, "{name: ", name, setting.parameters,
                               "}", setting.after, "]"),
                  absl::StrCat("config.DATA.TRAIN.COLLATE_FUNCTION=", setting.collator)}));
    of_vissl += known ? 1 : 0;
  }
  EXPECT_EQ(of_vissl, static_cast<int64_t>(registries_.transforms.Names().size())) << "names beside VISSL's";
}

TEST_F(VisslNamesCheckTest, Collators) {
  const std::string copies = "{name: ImgReplicatePil, num_times: 2}, {name: ToTensor}";
  const std::string patches = "{name: ImgPilToPatchesAndImage}, {name: ToTensor}";
  const std::map<std::string, std::vector<std::string>> further = {
      {"cutmixup_collator", {"config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS={num_classes: 4}"}},
      {"moco_collator", {absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[", copies, "]")}},
      {"patch_and_image_collator",
       {absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[", patches, "]"),
        "config.DATA.TRAIN.INPUT_KEY_NAMES=[images, patches]",
        "config.MODEL.MULTI_INPUT_HEAD_MAPPING=[[images, []], [patches, []]]"}},
      {"siamese_collator", {absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[", copies, "]")}},
      {"simclr_collator", {absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[", copies, "]")}},
      {"targets_one_hot_default_collator", {"config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS={num_classes: 4}"}},
  };
  const std::vector<std::string> ours = CollatorNames();
  const std::set<std::string> known(ours.begin(), ours.end());
  for (const std::string& name : VisslNames("collator")) {
    std::vector<std::string> tokens = {absl::StrCat("config.DATA.TRAIN.COLLATE_FUNCTION=", name)};
    const auto found = further.find(name);
    if (found != further.end()) tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    Expect(known.count(name) > 0, "collator", name, Check(tokens));
  }
}

TEST_F(VisslNamesCheckTest, Samplers) {
  for (const char* sampler : {"USE_DEBUGGING_SAMPLER=True", "USE_STATEFUL_DISTRIBUTED_SAMPLER=True",
                              "STRATIFIED_SAMPLER={ENABLED: True, CLASSES_PER_BATCH: 2, STEP_PER_EPOCH: 4}",
                              "POWER_LAW_SAMPLER={ENABLED: True, POWER: 0.5}"}) {
    Expect(true, "sampler", sampler, Check({absl::StrCat("config.DATA.TRAIN.", sampler)}));
  }
}

TEST_F(VisslNamesCheckTest, WhatHasNoUseHere_SaysWhy) {
  EXPECT_THAT(
      Check({"config.DATA.TRAIN.TRANSFORMS=[{name: ToTensor}, {name: MaskedImageModeling}]"}).missing_components,
      Contains(HasSubstr("transform 'MaskedImageModeling' (config.DATA.TRAIN.TRANSFORMS.1.name): no trunk here "
                         "takes masks")));
  EXPECT_THAT(Check({"config.DATA.TRAIN.COLLATE_FUNCTION=identity_collator"}).missing_components,
              Contains(HasSubstr("(config.DATA.TRAIN.COLLATE_FUNCTION): a list of samples is no batch")));
}

TEST_F(VisslNamesCheckTest, MistypedNamesAreMistakes) {
  EXPECT_THAT(Check({"config.DATA.TRAIN.TRANSFORMS=[{name: MaskedImageModelling}]"}).mistakes,
              Contains(HasSubstr("did you mean 'MaskedImageModeling'?")));
  EXPECT_THAT(Check({"config.DATA.TRAIN.COLLATE_FUNCTION=siamese_colator"}).mistakes,
              Contains(StartsWith("command line:3: config.DATA.TRAIN.COLLATE_FUNCTION is 'siamese_colator'")));
}

TEST_F(VisslNamesCheckTest, InputsThatTheModelDoesNotTake_AreMistakes) {
  const std::string patches = "config.DATA.TRAIN.TRANSFORMS=[{name: ImgPilToPatchesAndImage}, {name: ToTensor}]";
  const std::string collator = "config.DATA.TRAIN.COLLATE_FUNCTION=patch_and_image_collator";
  EXPECT_THAT(Check({patches, collator, "config.DATA.TRAIN.INPUT_KEY_NAMES=[images, patches]"}).mistakes,
              Contains(HasSubstr("command line:5: config.DATA.TRAIN.INPUT_KEY_NAMES is [images, patches] and "
                                 "config.MODEL.MULTI_INPUT_HEAD_MAPPING (built in) maps nothing")));
  EXPECT_THAT(Check({"config.MODEL.MULTI_INPUT_HEAD_MAPPING=[[images, []]]"}).mistakes,
              Contains(HasSubstr("config.DATA.TRAIN.INPUT_KEY_NAMES is [data] and "
                                 "config.MODEL.MULTI_INPUT_HEAD_MAPPING (command line:3) maps images")));
}

// It may give a model named inputs without a key of ours.
TEST_F(VisslNamesCheckTest, InputsOfAnotherProgramsSource_AreItsOwn) {
  ASSERT_OK(registries_.batch_sources.Register(
      "my_source", [](const ConfigNode&, const BuildContext&) -> absl::StatusOr<std::unique_ptr<BatchSource>> {
        return absl::UnimplementedError("opens nothing");
      }));
  EXPECT_THAT(Check({"config.MODEL.MULTI_INPUT_HEAD_MAPPING=[[rgb, []], [depth, []]]",
                     "config.DATA.TRAIN.BASE_DATASET=my_source"})
                  .mistakes,
              Each(Not(HasSubstr("INPUT_KEY_NAMES"))));
}

}  // namespace
}  // namespace ssl
