// SPDX-License-Identifier: Apache-2.0
//
// Names and composition; whole runs are in tests/integration.
#include "ssl/tools/command.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(FillRegistries(line_, &registries_)); }

  std::string Listed(const std::string& kind) { return ListNames(kind, registries_).value_or("error"); }

  CommandLine line_;
  Registries registries_;
};

// Literal lists: a component that is dropped or forgotten is noticed.
TEST_F(CommandTest, RegisteredNamesAreTheseAndNoOthers) {
  EXPECT_EQ(Listed("collators"),
            "cutmixup_collator\ndefault_collate\nmoco_collator\nmulticrop_collator\nmulticrop_mixup_collator\n"
            "patch_and_image_collator\nsiamese_collator\nsimclr_collator\ntargets_one_hot_default_collator\n");
  EXPECT_EQ(Listed("data_sources"),
            "disk_filelist\ndisk_folder\nnpy_images\nsynthetic\ntar_shards\n"
            "torchvision_dataset\n");
  EXPECT_EQ(Listed("engines"),
            "check_data\nestimate\nevaluate\nexport\nextract_features\nextract_label_predictions\nfull_tune\n"
            "knn\nlinear_eval\nneighbors\npreview\ntrain\n");
  EXPECT_EQ(
      Listed("heads"),
      "dino_head\ndino_head_fsdp\neval_mlp\neval_mlp_fsdp\nidentity\nmlp\nmlp_fsdp\nmlp_res\nsiamese_concat_view\n"
      "swav_head\nswav_head_fsdp\n");
  EXPECT_EQ(Listed("meters"),
            "accuracy_list_meter\nmean_ap_list_meter\nprecision_at_k_list_meter\n"
            "recall_at_k_list_meter\n");
  EXPECT_EQ(Listed("methods"),
            "BCEWithLogitsLoss\nCrossEntropyLoss\nHuberLoss\nKLDivLoss\nL1Loss\nMSELoss\nMultiLabelSoftMarginLoss\n"
            "MultiMarginLoss\nNLLLoss\nSmoothL1Loss\nSoftMarginLoss\nbarlow_twins_loss\n"
            "bce_logits_multiple_output_single_target\ncross_entropy_multiple_output_single_target\nmoco_loss\n"
            "multicrop_simclr_info_nce_loss\nsimclr_info_nce_loss\nswav_loss\n");
  EXPECT_EQ(Listed("models"), "multi_input_output_model\n");
  EXPECT_EQ(Listed("optimizers"), "adam\nadamw\nlars\nrmsprop\nsgd\nsgd_fsdp\n");
  EXPECT_EQ(Listed("parameter_groupings"), "default\ndino\nlinear_eval_heads\nlr_decay\n");
  EXPECT_EQ(Listed("samplers"),
            "MINI_EPOCHS\nPOWER_LAW_SAMPLER\nSTRATIFIED_SAMPLER\nUSE_DEBUGGING_SAMPLER\n"
            "USE_STATEFUL_DISTRIBUTED_SAMPLER\n");
  EXPECT_EQ(Listed("schedules"),
            "composite\nconstant\ncosine\ncosine_warm_restart\nexponential\ninverse_sqrt\nlinear\nmultistep\n"
            "polynomial\nstep\nstep_with_fixed_gamma\n");
  EXPECT_EQ(Listed("sinks"), "jsonl\ntensorboard\n");
  EXPECT_EQ(Listed("train_steps"), "graph_train_step\nstandard_train_step\n");
  EXPECT_EQ(Listed("transforms"),
            "CenterCrop\nColorJitter\nGrayscale\nImgPatchesFromTensor\nImgPil2LabTensor\n"
            "ImgPilColorDistortion\nImgPilGaussianBlur\nImgPilMultiCropRandomApply\n"
            "ImgPilRandomColorJitter\nImgPilRandomPhotometric\nImgPilRandomSolarize\n"
            "ImgPilResizeLargerSide\nImgPilToMultiCrop\nImgPilToPatchesAndImage\nImgPilToRawTensor\n"
            "ImgReplicatePil\nImgRotatePil\nImgToTensor\nMNISTImgPil2RGB\nNormalize\nOneHotEncode\n"
            "RandAugment\nRandomCrop\nRandomErasing\nRandomGrayscale\nRandomHorizontalFlip\n"
            "RandomResizedCrop\nRandomVerticalFlip\nResize\nShuffleImgPatches\nToTensor\n"
            "VisslAutoAugment\n");
  EXPECT_EQ(Listed("trunks"),
            "regnet\nregnet_fsdp\nresnet\nvision_transformer\nvision_transformer_fsdp\nxcit\nxcit_fsdp\n");
}

TEST_F(CommandTest, SamplersAreKeysOfTheTrainingData) {
  const ConfigNode defaults = registries_.options.Defaults();
  for (const absl::string_view key : absl::StrSplit(Listed("samplers"), '\n', absl::SkipEmpty())) {
    EXPECT_NE(defaults.FindPath(absl::StrCat("DATA.TRAIN.", key)), nullptr) << key;
  }
}

TEST_F(CommandTest, DefaultsAreWithinTheirRanges) {
  EXPECT_OK(registries_.options.Check(registries_.options.Defaults()));
}

TEST_F(CommandTest, UnknownKind_NamesTheNearest) {
  EXPECT_THAT(ListNames("hook", registries_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'hooks'?")));
}

TEST_F(CommandTest, ComposeRoot_HasDefaultsAndOverrides) {
  line_.tokens = {"config.SEED_VALUE=7", "engine_name=[train,knn]",
                  "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [8, 8], num_clusters: [4]}]]"};
  ASSERT_OK_AND_ASSIGN(const ConfigNode root, ComposeRoot(line_, registries_));
  EXPECT_EQ(root.FindPath("config.SEED_VALUE")->text(), "7");
  EXPECT_EQ(root.FindPath("config.OPTIMIZER.momentum")->text(), "0.9");
  EXPECT_EQ(root.Find("engine_name")->items().size(), 2u);
}

TEST_F(CommandTest, ComposeRoot_RefusesAllWrongNamesAtOnce) {
  line_.tokens = {"config.MODEL.TRUNK.NAME=rsenet", "config.OPTIMIZER.name=sdg", "engine_name=trian"};
  const absl::Status status = ComposeRoot(line_, registries_).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("command line:1: config.MODEL.TRUNK.NAME is 'rsenet', which is no trunk; did "
                                         "you mean 'resnet'?")));
  EXPECT_THAT(status.message(), HasSubstr("command line:2: config.OPTIMIZER.name is 'sdg'"));
  EXPECT_THAT(status.message(), HasSubstr("command line:3: engine_name is 'trian'"));
}

TEST_F(CommandTest, ComposeRoot_RefusesAnUnknownKey) {
  line_.tokens = {"config.SEED_VALU=7"};
  EXPECT_THAT(ComposeRoot(line_, registries_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'config.SEED_VALUE'?")));
}

TEST_F(CommandTest, ResolveRoot_FollowsTheRanksThatRun) {
  line_.tokens = {"config.LOSS.name=simclr_info_nce_loss", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=4",
                  "config.DISTRIBUTED.NUM_NODES=8"};
  ASSERT_OK_AND_ASSIGN(const Composition composition, ComposeUnresolved(line_, registries_));
  ASSERT_OK_AND_ASSIGN(const WorldOptions options, ReadWorldOptions(composition.root));
  EXPECT_EQ(options.nodes, 8);
  EXPECT_EQ(options.ranks_per_node, 1);
  ASSERT_OK_AND_ASSIGN(const ConfigNode root, ResolveRoot(composition, WorldShape{2, 3}, registries_));
  EXPECT_EQ(root.FindPath("config.DISTRIBUTED.NUM_NODES")->text(), "2");
  EXPECT_EQ(root.FindPath("config.DISTRIBUTED.NUM_PROC_PER_NODE")->text(), "3");
  EXPECT_EQ(root.FindPath("config.LOSS.simclr_info_nce_loss.buffer_params.world_size")->text(), "6");
}

// A message that names one of the two counts says who chose it.
TEST_F(CommandTest, ResolveRoot_KnowsWhereTheRanksComeFrom) {
  line_.tokens = {"config.DISTRIBUTED.NUM_PROC_PER_NODE=2"};
  line_.launch.launch = "local:4";
  ASSERT_OK_AND_ASSIGN(const Composition composition, ComposeUnresolved(line_, registries_));
  const auto place = [&](const WorldShape& world) {
    const absl::StatusOr<ConfigNode> root = ResolveRoot(composition, world, registries_);
    return root.ok() ? root->FindPath("config.DISTRIBUTED.NUM_PROC_PER_NODE")->location().ToString()
                     : root.status().ToString();
  };
  EXPECT_EQ(place({1, 4}), "command line: --launch=local:4");
  EXPECT_EQ(place({1, 2}), "command line:1") << "as the key says";
}

}  // namespace
}  // namespace ssl
