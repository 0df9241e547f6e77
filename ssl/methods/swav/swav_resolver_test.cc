// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_resolver.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
LOSS: {name: swav_loss, swav_loss: {embedding_dim: 128, num_prototypes: [3000], num_crops: 2, crops_for_assign: [0, 1]}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [64, 32, 16], num_clusters: [5, 7]}]]}}
DATA:
  TRAIN:
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 6, num_crops: [2, 4]}
      - {name: ToTensor}
)";

TEST(SwavResolver, HeadAndTransforms_GiveTheLossItsNumbers) {
  ConfigNode config = Parsed(kConfig);
  ASSERT_OK(ResolveSwav(&config));
  const ConfigNode& loss = *config.FindPath("LOSS.swav_loss");
  EXPECT_EQ(loss.Find("embedding_dim")->AsInt().value(), 16);
  EXPECT_EQ(*loss.Find("num_prototypes"), ConfigNode::FromInts({5, 7}));
  EXPECT_EQ(loss.Find("num_crops")->AsInt().value(), 6);
}

TEST(SwavResolver, WithoutMultiCrop_NumCropsStays) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("DATA.TRAIN.TRANSFORMS", ConfigNode::List());
  ASSERT_OK(ResolveSwav(&config));
  EXPECT_EQ(config.FindPath("LOSS.swav_loss.num_crops")->AsInt().value(), 2);
}

TEST(SwavResolver, HeadInAChain_IsFound) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("MODEL.HEAD.PARAMS",
                 Parsed("[[[mlp, {dims: [64, 9]}], [swav_head, {dims: [9, 3], num_clusters: [4]}]]]"));
  ASSERT_OK(ResolveSwav(&config));
  EXPECT_EQ(config.FindPath("LOSS.swav_loss.embedding_dim")->AsInt().value(), 3);
}

TEST(SwavResolver, AnotherLoss_IsLeftAlone) {
  ConfigNode config = Parsed("LOSS: {name: moco_loss}");
  const ConfigNode before = config;
  ASSERT_OK(ResolveSwav(&config));
  EXPECT_EQ(config, before);
}

TEST(SwavResolver, NoOrTwoSwavHeads_AreRefusedWithTheLine) {
  ConfigNode none = Parsed("LOSS: {name: swav_loss}\nMODEL:\n  HEAD:\n    PARAMS: [[mlp, {dims: [2, 2]}]]\n");
  EXPECT_THAT(ResolveSwav(&none), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("f.yaml:4: config.MODEL.HEAD.PARAMS has 0 swav_head entries")));
  ConfigNode two = Parsed(kConfig);
  const ConfigNode entry = two.FindPath("MODEL.HEAD.PARAMS")->items()[0];
  two.FindMutable("MODEL")->FindMutable("HEAD")->FindMutable("PARAMS")->Append(entry);
  EXPECT_THAT(ResolveSwav(&two), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 2 swav_head entries")));
}

TEST(SwavResolver, CollatorThatMixesCrops_IsRefusedWithBothPlaces) {
  ConfigNode config = Parsed(kConfig);
  for (const char* collator : {"multicrop_collator", "multicrop_mixup_collator", "cutmixup_collator"}) {
    config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", Parsed(collator));
    EXPECT_OK(ResolveSwav(&config)) << collator;
  }
  config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", Parsed("\nsimclr_collator"));
  EXPECT_THAT(ResolveSwav(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:2: config.DATA.TRAIN.COLLATE_FUNCTION is 'simclr_collator', swav_loss expects "
                       "multicrop_collator (config.LOSS.name, f.yaml:2)"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", ConfigNode::List());
  EXPECT_OK(ResolveSwav(&config)) << "a source of the host's";
}

// In the words of the head, whose arguments the user wrote.
TEST(SwavResolver, WhatIsWrongWithTheHead_IsSaidWithKeyValueAndPlace) {
  for (const auto& [heads, error] : {
           std::pair("[[swav_head]]", "swav_head has no dims, expected a list of widths such as [2048, 128]"),
           {"[[swav_head, {dims: [2, 2]}]]",
            "swav_head has no num_clusters, expected a list of numbers such as [3000]"},
           {"[[swav_head, {dims: [2, 2], num_cluster: [8]}]]",
            "unknown key 'swav_head.num_cluster'; did you mean 'num_clusters'?"},
           {"[[swav_head, {dims: [2, 2], num_clusters: 8}]]", "swav_head.num_clusters is '8', expected a list, as [8]"},
           {"[[swav_head, {dims: [2, 2], num_clusters: [0]}]]",
            "swav_head.num_clusters.0 is '0', expected an integer of at least 1"},
       }) {
    ConfigNode config = Parsed(absl::StrCat("LOSS: {name: swav_loss}\nMODEL: {HEAD: {PARAMS: ", heads, "}}\n"));
    EXPECT_THAT(ResolveSwav(&config), StatusIs(absl::StatusCode::kInvalidArgument,
                                               absl::StrCat("f.yaml:2: config.MODEL.HEAD.PARAMS: ", error)));
  }
  ConfigNode config = Parsed("LOSS: {name: swav_loss}\nMODEL: {HEAD: {PARAMS: [swav_head, {dims: [2, 2]}]}}\n");
  EXPECT_THAT(ResolveSwav(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:2: config.MODEL.HEAD.PARAMS is [swav_head, ...], one head, expected a list of heads, "
                       "[[swav_head, {arguments}]]"));
}

TEST(SwavResolver, NumbersThatTheHeadDecides_AreWarnedOf) {
  const CapturedLog log;
  ConfigNode defaults_of_vissl = Parsed(kConfig);
  ASSERT_OK(ResolveSwav(&defaults_of_vissl));
  ConfigNode same = Parsed(kConfig);
  same.SetPath("LOSS.swav_loss.num_prototypes", Parsed("[5, 7]"));
  ASSERT_OK(ResolveSwav(&same));
  EXPECT_THAT(log.warnings, ::testing::IsEmpty());
  ConfigNode other = Parsed(kConfig);
  other.SetPath("LOSS.swav_loss.num_prototypes", Parsed("\n[16]"));
  ASSERT_OK(ResolveSwav(&other));
  EXPECT_THAT(log.warnings, ::testing::ElementsAre("f.yaml:2: config.LOSS.swav_loss.num_prototypes has no effect: "
                                                   "config.MODEL.HEAD.PARAMS (f.yaml:3) decides"));
}

TEST(SwavResolver, AssignCropThatDoesNotExist_IsRefusedWithBothLines) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("LOSS.swav_loss.crops_for_assign", Parsed("[0,\n 6]"));
  EXPECT_THAT(ResolveSwav(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("f.yaml:2: config.LOSS.swav_loss.crops_for_assign holds crop 6, but there are 6 "
                                 "crops (f.yaml:7)")));
}

}  // namespace
}  // namespace ssl
