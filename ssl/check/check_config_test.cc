// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/check_config.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/config/node.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBase[] = "config=test/swav_tiny";

// The tiny configuration with further tokens on top.
ConfigReport CheckTiny(const std::vector<std::string>& tokens) {
  std::vector<std::string> all = {kBase};
  all.insert(all.end(), tokens.begin(), tokens.end());
  return CheckTokens(all);
}

// The tiny configuration as supervised training of one view.
std::vector<std::string> Supervised(const std::vector<std::string>& tokens) {
  std::vector<std::string> all = {"config.LOSS.name=CrossEntropyLoss",
                                  "config.MODEL.HEAD.PARAMS=[[mlp, {dims: [32, 4]}]]",
                                  "config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP=[]",
                                  "config.DATA.TRAIN.COLLATE_FUNCTION=default_collate",
                                  "config.DATA.TRAIN.TRANSFORMS=[{name: ToTensor}]",
                                  "config.METERS.names=[accuracy_list_meter]"};
  all.insert(all.end(), tokens.begin(), tokens.end());
  return all;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(MakeTempDir("check_config"), "/", name);
  std::ofstream(path) << text;
  return path;
}

struct WrongConfig {
  const char* name;
  std::vector<std::string> tokens;    // on top of the tiny configuration
  std::vector<std::string> expected;  // all in one mistake: place, key, values
};

void PrintTo(const WrongConfig& config, std::ostream* out) { *out << config.name; }

class WrongConfigTest : public ::testing::TestWithParam<WrongConfig> {};

TEST_P(WrongConfigTest, IsFoundWithKeyValueAndPlace) {
  const ConfigReport report = CheckTiny(GetParam().tokens);
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kMistakes);
  const auto has_all = [](const std::string& mistake) {
    for (const std::string& part : GetParam().expected) {
      if (!absl::StrContains(mistake, part)) return false;
    }
    return true;
  };
  EXPECT_THAT(report.mistakes, Contains(::testing::Truly(has_all))) << FormatReport(report);
  EXPECT_EQ(report.mistakes.size(), 1u) << FormatReport(report);
}

std::vector<WrongConfig> WrongConfigs();

INSTANTIATE_TEST_SUITE_P(All, WrongConfigTest, ::testing::ValuesIn(WrongConfigs()),
                         [](const auto& info) { return std::string(info.param.name); });

std::vector<WrongConfig> WrongValues() {
  return {
      {"UnknownKey", {"config.LOSS.swav_loss.temprature=1"}, {"command line", "temprature", "temperature"}},
      {"BatchIsText",
       {"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=many"},
       {"command line:2", "BATCHSIZE_PER_REPLICA is 'many'"}},
      {"BatchIsZero",
       {"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=0"},
       {"command line:2", "BATCHSIZE_PER_REPLICA is '0'"}},
      {"TooManyRanks", {"config.DISTRIBUTED.NUM_PROC_PER_NODE=16"}, {"at most 5, the samples of each of 16 ranks"}},
      {"UnknownChange", {"config.CHECKPOINT.ALLOW_CHANGES=[OPTIMIZER.num_epoch]"}, {"OPTIMIZER.num_epochs'?"}},
      {"TestPhaseOfFewerViews",
       {"config.TEST_MODEL=True"},
       {"command line:2: config.TEST_MODEL is true", "1 view of an image (config.DATA.TEST.TRANSFORMS)"}},
      {"OneChannelForATrunkOfThree",
       {"config.DATA.TRAIN.IMAGE_CHANNELS=1"},
       {"command line:2: config.DATA.TRAIN.IMAGE_CHANNELS is 1, but the trunk takes 3 channels",
        "grey images are read as three equal channels"}},
      {"FlagIsNumber", {"config.DATA.TRAIN.DROP_LAST=3"}, {"command line:2", "DROP_LAST is '3'"}},
      {"SectionIsScalar", {"config.MODEL.TRUNK=resnet"}, {"command line", "config.MODEL.TRUNK is 'resnet'"}},
      {"TemperatureIsZero", {"config.LOSS.swav_loss.temperature=0"}, {"command line:2", "temperature is '0'"}},
      {"EpsilonIsNegative", {"config.LOSS.swav_loss.epsilon=-0.1"}, {"command line:2", "epsilon is '-0.1'"}},
      {"NoSinkhornIterations", {"config.LOSS.swav_loss.num_iters=0"}, {"command line:2", "num_iters is '0'"}},
      {"LearningRateIsNan",
       {"config.OPTIMIZER.param_schedulers.lr.start_value=nan"},
       {"command line:2", "start_value is 'nan'"}},
      {"LearningRateIsInfinite",
       {"config.OPTIMIZER.param_schedulers.lr.end_value=1e999"},
       {"command line:2", "end_value is '1e999'"}},
      {"WeightDecayIsNegative",
       {"config.OPTIMIZER.weight_decay=-1"},
       {"command line:2", "config.OPTIMIZER.weight_decay is '-1'"}},
      {"NoEpochs", {"config.OPTIMIZER.num_epochs=0"}, {"command line:2", "num_epochs is '0'"}},
      {"UnknownDevice", {"config.MACHINE.DEVICE=abacus"}, {"command line:2", "config.MACHINE.DEVICE is 'abacus'"}},
      {"LabelType", {"config.DATA.TRAIN.LABEL_TYPE=guess"}, {"command line:2", "LABEL_TYPE is 'guess'"}},
      {"ListOfText", {"config.LOSS.swav_loss.crops_for_assign=[a]"}, {"command line:2", "crops_for_assign", "'a'"}},
      {"Version", {"VERSION=2"}, {"command line:2", "VERSION is '2', expected 1"}},
      {"CompatibilityKeyOfWrongType",
       {"config.SLURM.MEM_GB=much"},
       {"command line:2", "config.SLURM.MEM_GB is 'much'"}},
  };
}

std::vector<WrongConfig> WrongNames() {
  return {
      {"Trunk",
       {"config.MODEL.TRUNK.NAME=resnett"},
       {"command line:2", "config.MODEL.TRUNK.NAME is 'resnett'", "'resnet'"}},
      {"Head",
       {"config.MODEL.HEAD.PARAMS=[[swav_hed, {dims: [32, 16], num_clusters: [8]}]]"},
       {"command line:2", "config.MODEL.HEAD.PARAMS.0.0 is 'swav_hed'", "'swav_head'"}},
      {"Loss", {"config.LOSS.name=swav_los"}, {"command line:2", "config.LOSS.name is 'swav_los'", "'swav_loss'"}},
      {"Transform",
       {"config.DATA.TEST.TRANSFORMS=[{name: ToTensr}]"},
       {"command line:2", "config.DATA.TEST.TRANSFORMS.0.name is 'ToTensr'", "'ToTensor'"}},
      {"Source",
       {"config.DATA.TRAIN.DATA_SOURCES=[syntetic]"},
       {"command line:2", "DATA_SOURCES.0 is 'syntetic'", "'synthetic'"}},
      {"Optimizer", {"config.OPTIMIZER.name=sdg"}, {"command line:2", "config.OPTIMIZER.name is 'sdg'", "'sgd'"}},
      {"Schedule",
       {"config.OPTIMIZER.param_schedulers.lr.name=cosin"},
       {"command line:2", "param_schedulers.lr.name is 'cosin'", "'cosine'"}},
      {"PartOfASchedule",
       {"config.OPTIMIZER.param_schedulers.lr={name: composite, lengths: [0.5, 0.5], schedulers: [{name: linear}, "
        "{name: cosin}]}"},
       {"command line:2", "schedulers.1.name is 'cosin'", "'cosine'"}},
      {"Engine", {"engine_name=trian"}, {"command line:2", "engine_name is 'trian'", "'train'"}},
      {"Meter",
       {"config.METERS.names=[acuracy_list_meter]"},
       {"command line:2", "config.METERS.names.0 is 'acuracy_list_meter'", "'accuracy_list_meter'"}},
      {"Grouping",
       {"config.OPTIMIZER.param_group_constructor=lr_decya"},
       {"command line:2", "param_group_constructor is 'lr_decya'", "'lr_decay'"}},
      {"Collator",
       {"config.DATA.TRAIN.COLLATE_FUNCTION=multicrop"},
       {"command line:2", "COLLATE_FUNCTION is 'multicrop'"}},
      {"FrozenParameter",
       {"config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP=[[heads.0.prototypes7.weight, 3]]"},
       {"heads.0.prototypes7.weight"}},
  };
}

std::vector<WrongConfig> WrongCombinations() {
  return {
      {"NoSwavHead",
       {"config.MODEL.HEAD.PARAMS=[[mlp, {dims: [32, 16]}]]"},
       {"command line:2", "config.MODEL.HEAD.PARAMS has 0 swav_head"}},
      {"TwoSwavHeads",
       {"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 16], num_clusters: [8]}], [swav_head, {dims: [32, 16], "
        "num_clusters: [8]}]]"},
       {"command line:2", "has 2 swav_head"}},
      {"HeadWithoutClusters",
       {"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 16]}]]"},
       {"command line:2", "num_clusters"}},
      {"HeadNotAsWideAsTrunk",
       {"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [64, 16], num_clusters: [8]}]]"},
       {"command line:2", "HEAD.PARAMS", "64", "32"}},
      {"AssignmentOfAMissingCrop",
       {"config.LOSS.swav_loss.crops_for_assign=[0, 7]"},
       {"command line:2", "crops_for_assign holds crop 7", "3 crops"}},
      {"CollatorOfOneView",
       {"config.DATA.TRAIN.COLLATE_FUNCTION=default_collate"},
       {"command line:2", "COLLATE_FUNCTION is 'default_collate'", "multicrop_collator"}},
      {"KeysOfMoCoNoMultipleOfBatch",
       {"config.LOSS.name=moco_loss", "config.LOSS.moco_loss={embedding_dim: 16, queue_size: 100}",
        "config.MODEL.HEAD.PARAMS=[[mlp, {dims: [32, 16]}]]", "config.DATA.TRAIN.COLLATE_FUNCTION=moco_collator",
        "config.DATA.TRAIN.TRANSFORMS=[{name: ImgReplicatePil, num_times: 2}, {name: ToTensor}]",
        "config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP=[]"},
       {"command line:3", "config.LOSS.moco_loss.queue_size is 100", "multiple of 8", "BATCHSIZE_PER_REPLICA"}},
      {"BatchNormOfOneSample",
       {"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=1"},
       {"command line:2", "BATCHSIZE_PER_REPLICA is 1", "batch norm"}},
      {"BatchLargerThanData",
       {"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=128"},
       {"command line:2", "BATCHSIZE_PER_REPLICA is 128", "80"}},
      {"NoSamples", {"config.DATA.TRAIN.DATA_LIMIT=0"}, {"command line:2", "DATA_LIMIT is 0"}},
      {"NoSuchFolder",
       {"config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", "config.DATA.TRAIN.DATA_PATHS=[/no/such/folder]"},
       {"command line:3", "DATA_PATHS", "/no/such/folder"}},
      {"CropsDoNotAddUp",
       {"config.DATA.TRAIN.TRANSFORMS=[{name: ImgPilToMultiCrop, total_num_crops: 4, num_crops: [2, 1], size_crops: "
        "[16, 8], crop_scales: [[0.4, 1.0], [0.15, 0.4]]}, {name: ToTensor}]"},
       {"command line:2", "total_num_crops", "4", "3"}},
      {"CropSizesMissing",
       {"config.DATA.TRAIN.TRANSFORMS=[{name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: "
        "[16], crop_scales: [[0.4, 1.0], [0.15, 0.4]]}, {name: ToTensor}]"},
       {"command line:2", "size_crops"}},
      {"MilestonesFall",
       {"config.OPTIMIZER.param_schedulers.lr={name: multistep, values: [0.1, 0.01, 0.001], milestones: [1, 0]}"},
       {"command line:2", "milestones"}},
      {"MilestonesBeyondTheEnd",
       {"config.OPTIMIZER.param_schedulers.lr={name: multistep, values: [0.1, 0.01], milestones: [7]}"},
       {"command line:2", "milestones", "7", "2"}},
      {"ValuesAndMilestones",
       {"config.OPTIMIZER.param_schedulers.lr={name: multistep, values: [0.1], milestones: [1]}"},
       {"command line:2", "values has 1 entries, expected 2"}},
      {"LengthsDoNotAddUp",
       {"config.OPTIMIZER.param_schedulers.lr={name: composite, lengths: [0.5, 0.4], schedulers: [{name: linear}, "
        "{name: cosine}]}"},
       {"command line:2", "lengths add up to 0.9"}},
      {"LengthsMissing",
       {"config.OPTIMIZER.param_schedulers.lr={name: composite, lengths: [1.0], schedulers: [{name: linear}, {name: "
        "cosine}]}"},
       {"command line:2", "lengths has 1 entries"}},
      {"ScalingOfAnUnscalableSchedule",
       {"config.OPTIMIZER.param_schedulers.lr={name: polynomial, auto_lr_scaling: {auto_scale: True}}"},
       {"command line:2", "polynomial: config.OPTIMIZER.param_schedulers.lr.name is 'polynomial'", "cannot scale"}},
      {"LarcOfAdam",
       {"config.OPTIMIZER.name=adam", "config.OPTIMIZER.use_larc=True"},
       {"command line:3", "use_larc", "adam"}},
      {"EmaMetersWithoutMeters",
       {"config.HOOKS.EMA_MODEL.ENABLE_EMA_METERS=True"},
       {"command line:2", "ENABLE_EMA_METERS is true", "METERS.names"}},
      {"WeightsFileMissing",
       {"config.MODEL.WEIGHTS_INIT.PARAMS_FILE=/no/such/weights.torch"},
       {"command line:2", "/no/such/weights.torch"}},
      {"TransformType",
       {"config.DATA.TEST.TRANSFORMS=[{name: ToTensor, transform_type: kornia}]"},
       {"command line:2", "transform_type", "'kornia'"}},
      {"LabelsBeyondTheOutputs",
       Supervised({"config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=9"}),
       {"swav_tiny.yaml:1", "config.DATA.TRAIN.DATA_SOURCES", "has label 8", "below 4", "command line:3"}},
      {"NoLabels",
       Supervised({"config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=0", "config.DATA.TRAIN.LABEL_SOURCES=[synthetic]"}),
       {"command line:9: config.DATA.TRAIN.LABEL_SOURCES is [synthetic]", "DATA_SOURCES [synthetic] has none"}},
      {"TopKBeyondTheOutputs",
       Supervised({"config.METERS.accuracy_list_meter.topk_values=[1, 5]"}),
       {"command line:8", "topk_values holds 5", "at most 4"}},
  };
}

std::vector<WrongConfig> WrongConfigs() {
  std::vector<WrongConfig> all;
  for (const std::vector<WrongConfig>& part : {WrongValues(), WrongNames(), WrongCombinations()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(CheckConfigTest, RightConfigurationsWouldRun) {
  const ConfigReport report = CheckTiny({});
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << FormatReport(report);
  EXPECT_EQ(FormatReport(report), "would run here\n");
  const ConfigReport supervised = CheckTiny(Supervised({}));
  EXPECT_EQ(VerdictOf(supervised), ConfigVerdict::kRuns) << FormatReport(supervised);
  const ConfigReport grey = CheckTiny(
      {"config.MODEL.INPUT_TYPE=lab", "config.DATA.TRAIN.IMAGE_CHANNELS=1", "config.DATA.TEST.IMAGE_CHANNELS=1"});
  EXPECT_EQ(VerdictOf(grey), ConfigVerdict::kRuns) << FormatReport(grey);
}

TEST(CheckConfigTest, ManyMistakesComeAtOnceWithFileAndLine) {
  const std::string path = WriteFile("wrong.yaml",
                                     "# @package _global_\n"
                                     "config:\n"
                                     "  LOSS:\n"
                                     "    name: swav_los\n"
                                     "    swav_loss:\n"
                                     "      temprature: 0.1\n"
                                     "      epsilon: -1\n"
                                     "  OPTIMIZER:\n"
                                     "    num_epochs: ten\n"
                                     "  DATA:\n"
                                     "    TRAIN:\n"
                                     "      BATCHSIZE_PER_REPLICA: 0\n");
  const ConfigReport report = CheckTiny({absl::StrCat("+config=", path)});
  EXPECT_EQ(report.mistakes.size(), 5u) << FormatReport(report);
  for (const char* line : {":4: config.LOSS.name is 'swav_los'", ":6: unknown key 'config.LOSS.swav_loss.temprature'",
                           ":7: config.LOSS.swav_loss.epsilon is '-1'", ":9: config.OPTIMIZER.num_epochs is 'ten'",
                           ":12: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is '0'"}) {
    EXPECT_THAT(report.mistakes, Contains(HasSubstr(absl::StrCat(path, line)))) << FormatReport(report);
  }
  EXPECT_THAT(FormatReport(report), HasSubstr("5 mistakes\n"));
}

// One mistake of each group: what the files say, values, names, contradictions, and what only building can tell.
TEST(CheckConfigTest, MistakesOfAllGroupsComeAtOnce) {
  const ConfigReport report = CheckTiny({
      "config.LOSS.swav_loss.temprature=1",                  // an unknown key
      "config.OPTIMIZER.num_epochs=many",                    // a value
      "config.OPTIMIZER.name=sdg",                           // a name
      "config.LOSS.swav_loss.crops_for_assign=[0, 7]",       // a resolver's contradiction
      "config.DATA.TRAIN.COLLATE_FUNCTION=default_collate",  // a contradiction
      "config.DATA.TRAIN.DATA_LIMIT=0",                      // the data set
      "config.OPTIMIZER.param_schedulers.lr={name: multistep, values: [0.1], milestones: [1]}",  // a part
      "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [64, 16], num_clusters: [8]}]]",             // the model
  });
  for (const char* part : {"temprature", "num_epochs is 'many'", "OPTIMIZER.name is 'sdg'", "holds crop 7",
                           "COLLATE_FUNCTION is 'default_collate'", "DATA_LIMIT is 0",
                           "values has 1 entries, expected 2", "HEAD.PARAMS"}) {
    EXPECT_THAT(report.mistakes, Contains(HasSubstr(part))) << FormatReport(report);
  }
  EXPECT_EQ(report.mistakes.size(), 8u) << FormatReport(report);
}

// Besides mistakes of other groups, the session is opened, too.
TEST(CheckConfigTest, WhatOnlyTheSessionTellsComesWithTheRest) {
  const ConfigReport report =
      CheckTiny({"config.LOSS.swav_loss.temprature=1", "config.OPTIMIZER.num_epochs=many", "config.OPTIMIZER.name=sdg",
                 "config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP=[[heads.0.prototypes7.weight, 3]]"});
  EXPECT_THAT(report.mistakes, Contains(HasSubstr("heads.0.prototypes7.weight"))) << FormatReport(report);
  EXPECT_EQ(report.mistakes.size(), 4u) << FormatReport(report);
}

TEST(CheckConfigTest, BrokenOrMissingFilesAreMistakes) {
  const ConfigReport missing = CheckTokens({"config=no/such/file"});
  EXPECT_THAT(missing.mistakes, Contains(HasSubstr("no/such/file")));
  const std::string path = WriteFile("broken.yaml", "config:\n  LOSS: {name: swav_loss\n");
  const ConfigReport broken = CheckTokens({absl::StrCat("config=", path)});
  EXPECT_EQ(VerdictOf(broken), ConfigVerdict::kMistakes);
  EXPECT_THAT(broken.mistakes, Contains(HasSubstr(path)));
}

TEST(CheckConfigTest, WhatVisslHasAndThisProgramLacksIsNoMistake) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"config.MODEL.TRUNK.NAME=swin_transformer", "trunk 'swin_transformer' (config.MODEL.TRUNK.NAME)"},
      {"config.LOSS.name=dino_loss", "loss 'dino_loss' (config.LOSS.name)"},
      {"config.DATA.TEST.TRANSFORMS=[{name: AugMix}]", "transform 'AugMix' (config.DATA.TEST.TRANSFORMS.0.name)"},
      {"config.DATA.TEST.TRANSFORMS=[{name: Blur, transform_type: augly}]", "augly transform 'Blur'"},
      {"config.DATA.TRAIN.DATA_SOURCES=[everstore]", "data source 'everstore' (config.DATA.TRAIN.DATA_SOURCES.0)"},
      {"config.DATA.TRAIN.COLLATE_FUNCTION=ibot_multicrop_masking_collator",
       "collator 'ibot_multicrop_masking_collator' (config.DATA.TRAIN.COLLATE_FUNCTION)"},
      {"config.TRAINER.TASK_NAME=self_supervision_sdp_task", "task 'self_supervision_sdp_task'"},
      {"config.MODEL.HEAD.PARAMS=[[msn_head, {in_channels: 32, num_clusters: [8]}]]", "head 'msn_head'"},
      {"config.MODEL.TRUNK={NAME: vision_transformer, VISION_TRANSFORMERS: {MASKED_IMAGE_MODELING: {NAME: ibot}}}",
       "config.MODEL.TRUNK.VISION_TRANSFORMERS.MASKED_IMAGE_MODELING.NAME is 'ibot'"},
  };
  for (const auto& [token, expected] : cases) {
    SCOPED_TRACE(token);
    const ConfigReport report = CheckTiny({token});
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete) << FormatReport(report);
    EXPECT_THAT(report.missing_components, Contains(HasSubstr(absl::StrCat("command line:2: ", expected))))
        << FormatReport(report);
    EXPECT_THAT(FormatReport(report), HasSubstr("right, but cannot run here\n"));
  }
}

TEST(CheckConfigTest, DataSetsWithoutAKnownFolderAreMissing) {
  const ConfigReport report = CheckTiny(
      {"config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", "config.DATA.TRAIN.DATASET_NAMES=[imagenet1k_folder]"});
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete) << FormatReport(report);
  EXPECT_THAT(report.missing_components, Contains(HasSubstr("command line:3: data set 'imagenet1k_folder'")));
}

TEST(CheckConfigTest, SectionsOfComponentsThatAreNotNamedDoNotMatter) {
  const ConfigReport report = CheckTiny({"config.LOSS.dino_loss.momentum=0.9",
                                         "config.MODEL.TRUNK.CONVNEXT.DROP_PATH_RATE=0.1", "config.SLURM.TIME_HOURS=3",
                                         "config.DISTRIBUTED.NUM_PROC_PER_NODE=2", "config.DISTRIBUTED.NUM_NODES=2"});
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << FormatReport(report);
}

TEST(CheckConfigTest, FragmentIsRightAndTellsWhatItLacks) {
  const std::string path = WriteFile("fragment.yaml",
                                     "config:\n"
                                     "  DATA:\n"
                                     "    TRAIN:\n"
                                     "      TRANSFORMS: [{name: ToTensor}]\n");
  const ConfigReport report = CheckTokens({absl::StrCat("config=", path)});
  EXPECT_TRUE(report.is_fragment);
  EXPECT_THAT(report.mistakes, IsEmpty());
  EXPECT_EQ(report.fragment_reason,
            "no file sets config.MODEL.TRUNK.NAME, config.DATA.TRAIN.DATA_SOURCES, config.LOSS.name");
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete);

  const ConfigReport wrong = CheckTokens({absl::StrCat("config=", path), "config.DATA.TRAIN.DROP_LAST=maybe"});
  EXPECT_EQ(VerdictOf(wrong), ConfigVerdict::kMistakes);
}

}  // namespace
}  // namespace ssl
