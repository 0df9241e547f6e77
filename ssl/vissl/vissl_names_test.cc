// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/vissl_names.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(VisslNamesTest, KnowsNamesByTheirKind) {
  EXPECT_TRUE(IsVisslName("trunk", "vision_transformer"));
  EXPECT_TRUE(IsVisslName("loss", "dino_loss"));
  EXPECT_TRUE(IsVisslName("loss", "SmoothL1Loss"));
  EXPECT_TRUE(IsVisslName("transform", "RandAugment"));
  EXPECT_TRUE(IsVisslName("transform", "RandomErasing"));
  EXPECT_FALSE(IsVisslName("transform", "dino_loss"));
  EXPECT_FALSE(IsVisslName("trunk", "resnett"));
  EXPECT_FALSE(IsVisslName("no such kind", "resnet"));
  EXPECT_TRUE(IsVisslName("augly transform", "Blur"));
}

TEST(VisslNamesTest, EveryKindHasNamesOnceEach) {
  // As many as the tables of VISSL have.
  const std::vector<std::pair<std::string, size_t>> sizes = {
      {"collator", 11}, {"data source", 7}, {"device", 2},        {"engine", 4},
      {"head", 18},     {"loss", 40},       {"meter", 4},         {"optimizer", 9},
      {"schedule", 10}, {"transform", 54},  {"trunk", 23},        {"task", 3},
      {"model", 1},     {"train step", 1},  {"data set type", 1}, {"parameter grouping", 4},
  };
  for (const auto& [kind, size] : sizes) {
    const std::vector<std::string>& names = VisslNames(kind);
    EXPECT_EQ(names.size(), size) << kind;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << kind;
  }
}

TEST(VisslNamesTest, ReasonsAreOfNamesThatItHas) {
  for (const auto& [kind, name] : {std::pair<std::string, std::string>("collator", "identity_collator"),
                                   {"collator", "ibot_multicrop_masking_collator"},
                                   {"transform", "MaskedImageModeling"}}) {
    EXPECT_TRUE(IsVisslName(kind, name)) << name;
    EXPECT_NE(WhyNotHere(kind, name), "") << name;
  }
  EXPECT_EQ(WhyNotHere("transform", "AugMix"), "");
  EXPECT_EQ(WhyNotHere("collator", "MaskedImageModeling"), "");
}

}  // namespace
}  // namespace ssl
