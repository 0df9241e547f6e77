// SPDX-License-Identifier: Apache-2.0
//
// One image that is left over for the last batch of an epoch: told before a start where the network cannot be trained
// on it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/testing/check_tokens.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A supervised ResNet on synthetic images, in batches of 8.
std::vector<std::string> MistakesOn(int images, int crop, const std::vector<std::string>& more) {
  std::vector<std::string> tokens = {
      "config=test/swav_tiny",
      "engine_name=train",
      "config.LOSS.name=cross_entropy_multiple_output_single_target",
      "config.MODEL.HEAD.PARAMS=[[mlp,{dims: [32,4]}]]",
      "config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP=[]",
      "config.MODEL.TRUNK.RESNETS.STEM=imagenet",
      "config.DATA.TRAIN.DROP_LAST=False",
      "config.DATA.TRAIN.COLLATE_FUNCTION=default_collate",
      absl::StrCat("config.DATA.TRAIN.TRANSFORMS=[{name: CenterCrop, size: ", crop, "},{name: ToTensor}]"),
      absl::StrCat("config.DATA.TRAIN.DEFAULT_GRAY_IMG_SIZE=", crop),
      absl::StrCat("config.DATA.TRAIN.DATA_LIMIT=", images),
  };
  tokens.insert(tokens.end(), more.begin(), more.end());
  return CheckTokens(tokens).mistakes;
}

TEST(LastBatchCheckTest, OneImageAndOnePixel_AreTooFew) {
  EXPECT_THAT(MistakesOn(41, 32, {}),
              ElementsAre(AllOf(HasSubstr("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 8, which leaves 1 image for the "
                                          "last batch of an epoch (41 images); set config.DATA.TRAIN.DROP_LAST=True"),
                                HasSubstr("more than 1 value per channel"), HasSubstr("[1, 32, 1, 1]"))));
  EXPECT_THAT(MistakesOn(18, 32, {"config.DISTRIBUTED.NUM_PROC_PER_NODE=2"}),
              ElementsAre(HasSubstr("(18 images for 2 ranks)")));
  EXPECT_THAT(MistakesOn(41, 32, {"config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True"}),
              ElementsAre(HasSubstr("which leaves 1 image")));
}

TEST(LastBatchCheckTest, WhatCanBeTrained_IsNoMistake) {
  EXPECT_THAT(MistakesOn(41, 32, {"config.DATA.TRAIN.DROP_LAST=True"}), IsEmpty());
  EXPECT_THAT(MistakesOn(41, 64, {}), IsEmpty()) << "the last map has 2 x 2 pixels";
  EXPECT_THAT(MistakesOn(42, 32, {}), IsEmpty());
  EXPECT_THAT(
      MistakesOn(18, 32,
                 {"config.DISTRIBUTED.NUM_PROC_PER_NODE=2", "config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True"}),
      IsEmpty())
      << "the two ranks have two images together";
}

// The trunk sees views of one size at a time, and one image has one small view.
TEST(LastBatchCheckTest, OneViewOfASizeIsTooFew) {
  EXPECT_THAT(CheckTokens({"config=test/swav_tiny", "engine_name=train", "config.DATA.TRAIN.DATA_LIMIT=81",
                           "config.DATA.TRAIN.DROP_LAST=False", "config.DATA.TRAIN.TRANSFORMS.0.num_crops=[2,1]"})
                  .mistakes,
              ElementsAre(HasSubstr("which leaves 1 image for the last batch of an epoch (81 images)")));
}

}  // namespace
}  // namespace ssl
