// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/named_components.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> Described(const std::string& yaml) {
  const absl::StatusOr<ConfigNode> root = ParseYaml(yaml, "f.yaml", nullptr);
  EXPECT_OK(root);
  std::vector<std::string> described;
  for (const NamedComponent& component : NamedComponents(*root)) {
    described.push_back(
        absl::StrCat(component.location.ToString(), " ", component.kind, " ", component.name, " ", component.path));
  }
  return described;
}

TEST(NamedComponentsTest, EnginesAreOneNameOrAList) {
  EXPECT_THAT(Described("engine_name: train\n"), ElementsAre("f.yaml:1 engine train engine_name"));
  EXPECT_THAT(Described("engine_name: [train, knn]\n"),
              ElementsAre("f.yaml:1 engine train engine_name.0", "f.yaml:1 engine knn engine_name.1"));
}

TEST(NamedComponentsTest, AnEngineNameThatNamesNone_IsAMistake) {
  for (const char* yaml : {"engine_name: []\n", "engine_name: ''\n", "engine_name: null\n"}) {
    EXPECT_THAT(MissingEngine(*ParseYaml(yaml, "f.yaml", nullptr)),
                StartsWith("f.yaml:1: engine_name names no engine, expected one"))
        << yaml;
  }
  EXPECT_EQ(MissingEngine(*ParseYaml("engine_name: [knn]\n", "f.yaml", nullptr)), "");
}

TEST(NamedComponentsTest, HeadsWithinHeads) {
  EXPECT_THAT(
      Described("config:\n"
                "  MODEL:\n"
                "    HEAD:\n"
                "      PARAMS:\n"
                "        - [mlp, {dims: [2, 1]}]\n"
                "        - [[mlp, {}], [eval_mlp, {}]]\n"),
      ElementsAre("f.yaml:5 head mlp config.MODEL.HEAD.PARAMS.0.0", "f.yaml:6 head mlp config.MODEL.HEAD.PARAMS.1.0.0",
                  "f.yaml:6 head eval_mlp config.MODEL.HEAD.PARAMS.1.1.0"));
}

TEST(NamedComponentsTest, TransformsWithinTransformsAndPartsOfSchedules) {
  EXPECT_THAT(Described("config:\n"
                        "  DATA:\n"
                        "    TRAIN:\n"
                        "      TRANSFORMS:\n"
                        "        - name: ImgPilMultiCropRandomApply\n"
                        "          transforms: [{name: ImgPilGaussianBlur}]\n"
                        "        - {name: Blur, transform_type: augly}\n"
                        "  OPTIMIZER:\n"
                        "    param_schedulers:\n"
                        "      lr: {name: composite, schedulers: [{name: linear}]}\n"
                        "      weight_decay: {name: cosine}\n"),
              ElementsAre("f.yaml:5 transform ImgPilMultiCropRandomApply config.DATA.TRAIN.TRANSFORMS.0.name",
                          "f.yaml:6 transform ImgPilGaussianBlur config.DATA.TRAIN.TRANSFORMS.0.transforms.0.name",
                          "f.yaml:7 augly transform Blur config.DATA.TRAIN.TRANSFORMS.1.name",
                          "f.yaml:10 schedule composite config.OPTIMIZER.param_schedulers.lr.name",
                          "f.yaml:10 schedule linear config.OPTIMIZER.param_schedulers.lr.schedulers.0.name",
                          "f.yaml:11 schedule cosine config.OPTIMIZER.param_schedulers.weight_decay.name"));
}

TEST(NamedComponentsTest, WhatIsNoNameIsLeftOut) {
  EXPECT_THAT(Described("config:\n"
                        "  LOSS: {name: {a: b}}\n"
                        "  DATA: {TRAIN: {TRANSFORMS: ToTensor}}\n"
                        "  MODEL: {TRUNK: {NAME: null}, HEAD: {PARAMS: [mlp, {}]}}\n"),
              IsEmpty());
}

TEST(NamedComponentsTest, RegisteredNamesAreThoseOfTheKindsRegistry) {
  Registries registries;
  ASSERT_OK(registries.trunks.Register("tiny", nullptr));
  EXPECT_THAT(RegisteredNames("trunk", registries), ElementsAre("tiny"));
  EXPECT_THAT(RegisteredNames("loss", registries), IsEmpty());
  EXPECT_THAT(RegisteredNames("no such kind", registries), IsEmpty());
}

}  // namespace
}  // namespace ssl
