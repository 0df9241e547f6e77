// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/message_place.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"

namespace ssl {
namespace {

std::string Placed(absl::string_view line) {
  ConfigNode root =
      ParseYaml("config:\n  LOSS:\n    name: x\n  MODEL: {HEAD: {PARAMS: [[mlp]]}}\n", "a.yaml", nullptr).value();
  root.SetPath("config.LOSS.num_crops", ConfigNode::FromInt(2));  // a default
  return WithPlaceOfKey(line, root);
}

TEST(MessagePlaceTest, PlaceOfTheFirstKeyThatStandsSomewhereLeads) {
  EXPECT_EQ(Placed("config.LOSS.name is 'x', expected 'y'"), "a.yaml:3: config.LOSS.name is 'x', expected 'y'");
  EXPECT_EQ(Placed("hook eval: config.LOSS.name is 'x'"), "a.yaml:3: hook eval: config.LOSS.name is 'x'");
  EXPECT_EQ(Placed("built in: config.LOSS.name has 'x'"), "a.yaml:3: config.LOSS.name has 'x'");
  EXPECT_EQ(Placed("heads give 3 (config.MODEL.HEAD.PARAMS[0])."),
            "a.yaml:4: heads give 3 (config.MODEL.HEAD.PARAMS[0]).");
}

TEST(MessagePlaceTest, SubjectThatNobodySet_IsMarkedAndHasNoPlace) {
  EXPECT_EQ(Placed("config.LOSS.num_crops is 2, the heads give 3 (config.MODEL.HEAD.PARAMS)"),
            "config.LOSS.num_crops (not set) is 2, the heads give 3 (config.MODEL.HEAD.PARAMS)");
  EXPECT_EQ(Placed("config.LOSS.num_crops is 2; add config.LOSS.name=y"),
            "config.LOSS.num_crops (not set) is 2; add config.LOSS.name=y");
  EXPECT_EQ(Placed("config.LOSS.num_crops is 2"), "config.LOSS.num_crops (not set) is 2");
  EXPECT_EQ(Placed("3 views (config.LOSS.num_crops is 2)"), "3 views (config.LOSS.num_crops (not set) is 2)");
}

TEST(MessagePlaceTest, WhatToTypeIsNoKeyOfTheLine) {
  EXPECT_EQ(Placed("too few views; try config.LOSS.name=y"), "too few views; try config.LOSS.name=y");
  EXPECT_EQ(Placed("with config.LOSS.name=y config.MODEL.HEAD.PARAMS has 3"),
            "a.yaml:4: with config.LOSS.name=y config.MODEL.HEAD.PARAMS has 3");
}

TEST(MessagePlaceTest, FileWithoutANumberBehindItIsNoPlace) {
  EXPECT_EQ(Placed("config.LOSS.name is 'x', which the command line may say"),
            "a.yaml:3: config.LOSS.name is 'x', which the command line may say");
  EXPECT_EQ(Placed("see x.yaml: config.LOSS.name is 'x'"), "a.yaml:3: see x.yaml: config.LOSS.name is 'x'");
}

TEST(MessagePlaceTest, LinesWithAPlaceOrWithoutAKeyStay) {
  for (const char* line :
       {"b.yml:7: config.LOSS.name is 'x'", "command line: config.LOSS.name is 'x'",
        "config.LOSS.num_crops is 2 (b.yaml:9)", "hook x: command line:3: config.LOSS.name is 'x'",
        "runs/a/config.json is no JSON", "my.config.LOSS.name", "config.NO.KEY is 3", "nothing", ""}) {
    EXPECT_EQ(Placed(line), line);
  }
}

}  // namespace
}  // namespace ssl
