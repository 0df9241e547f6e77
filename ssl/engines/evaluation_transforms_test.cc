// SPDX-License-Identifier: Apache-2.0
//
// Which transforms of training an evaluation keeps, where its configuration names none (evaluation_plan.h): of all that
// are registered, those that make tensors of images or change them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/register_data.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Whether it gives an image, or a tensor, floats that it did not have.
bool ChangesFloats(const Transform& transform) {
  const PixelTable unit = MakeToTensorTable();
  const std::vector<const PixelTable*> tables = {nullptr, &unit};
  return std::any_of(tables.begin(), tables.end(), [&](const PixelTable* before) {
    Sample sample;
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(300, 300, 3);
    std::fill_n(pixels, sample.view(0).image.size_bytes(), uint8_t{100});
    sample.view(0).table = before;
    TransformScratch scratch;
    const TransformContext context{/*seed=*/1, /*epoch=*/0, /*sample=*/0, /*operation=*/0, scratch};
    return transform.Apply(context, &sample).ok() && sample.view(0).table != before;
  });
}

class EvaluationTransformsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // An entry with what a transform of that name cannot be made without.
  ConfigNode Entry(const std::string& name) {
    const std::string permutations = absl::StrCat(MakeTempDir("permutations"), "/perm.npy");
    EXPECT_OK(WriteNpy<int64_t>(PosixFileSystem(), permutations, {1, 1}, {0}));
    const std::map<std::string, std::string> parameters = {
        {"CenterCrop", ", size: 8"},
        {"ImgPilMultiCropRandomApply", ", transforms: [{name: Grayscale}], prob: [1.0]"},
        {"ImgPilToMultiCrop", ", total_num_crops: 2, num_crops: [2], size_crops: [8], crop_scales: [[0.1, 1.0]]"},
        {"Normalize", ", mean: [0.5], std: [0.5]"},
        {"RandomCrop", ", size: 8"},
        {"RandomResizedCrop", ", size: 8"},
        {"Resize", ", size: 8"},
        {"ShuffleImgPatches", absl::StrCat(", perm_file: ", permutations)},
    };
    const auto own = parameters.find(name);
    const std::string rest = own == parameters.end() ? "" : own->second;
    return ParseYaml(absl::StrCat("{name: ", name, rest, "}"), "run.yaml", nullptr).value();
  }

  // DATA.TEST.TRANSFORMS of an evaluation after a training with these.
  ConfigNode Evaluated(const ConfigNode& training) {
    ConfigNode config = registries_.options.Defaults();
    config.SetPath("DATA.TRAIN.DATA_SOURCES", ConfigNode::FromStrings({"synthetic"}));
    config.SetPath("DATA.TRAIN.TRANSFORMS", training);
    return *PlanEvaluation(config, registries_.options.Defaults(), PosixFileSystem())
                .config.FindPath("DATA.TEST.TRANSFORMS");
  }

  ConfigNode EvaluatedText(const std::string& training) {
    return Evaluated(ParseYaml(training, "run.yaml", nullptr).value());
  }

  Registries registries_;
};

std::vector<std::string> Names(const ConfigNode& transforms) {
  std::vector<std::string> names;
  for (const ConfigNode& transform : transforms.items()) names.push_back(transform.Find("name")->text());
  return names;
}

TEST_F(EvaluationTransformsTest, WhatMakesTensors_IsKept) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  std::vector<std::string> makers;
  for (const std::string& name : registries_.transforms.Names()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                         registries_.transforms.Make(name, Entry(name), {config, registries_, *communicator}));
    if (!ChangesFloats(*transform)) continue;
    makers.push_back(name);
    ConfigNode training = ConfigNode::List();
    training.Append(Entry(name));
    const ConfigNode kept = Evaluated(training);
    ASSERT_THAT(kept.items(), SizeIs(1));
    EXPECT_TRUE(kept.items()[0] == Entry(name));
  }
  EXPECT_THAT(makers, ElementsAre("ImgPil2LabTensor", "ImgPilToRawTensor", "ImgToTensor", "Normalize", "ToTensor"));
}

TEST_F(EvaluationTransformsTest, TensorsOfOtherViewsThanTheFirst_AreNot) {
  const ConfigNode kept = EvaluatedText(
      "[{name: ImgReplicatePil}, {name: ToTensor}, {name: Normalize, indices: [1], mean: [0.1], std: [0.1]},"
      " {name: Normalize, indices: [0, 2], mean: [0.5], std: [0.5]}]");
  ASSERT_THAT(Names(kept), ElementsAre("ToTensor", "Normalize"));
  EXPECT_EQ(kept.FindPath("1.mean.0")->text(), "0.5");
  EXPECT_EQ(kept.FindPath("1.indices"), nullptr) << "an evaluation has one view";
}

TEST_F(EvaluationTransformsTest, ImageBesidePatches_GivesTheSize) {
  const ConfigNode kept = EvaluatedText("[{name: ImgPilToPatchesAndImage, crop_size_image: 224}, {name: ToTensor}]");
  ASSERT_THAT(Names(kept), ElementsAre("Resize", "CenterCrop", "ToTensor"));
  EXPECT_EQ(kept.FindPath("1.size")->text(), "224");
}

TEST_F(EvaluationTransformsTest, EmptySize_IsNone) {
  EXPECT_THAT(Names(EvaluatedText("[{name: MNISTImgPil2RGB, size: []}, {name: ToTensor}]")), ElementsAre("ToTensor"));
  const ConfigNode kept =
      EvaluatedText("[{name: RandomCrop, size: 28}, {name: MNISTImgPil2RGB, size: []}, {name: ToTensor}]");
  EXPECT_EQ(kept.FindPath("1.size")->text(), "28");
}

}  // namespace
}  // namespace ssl
