// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/transformer_options.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ConfigNode Parse(const std::string& text) {
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "test.yaml", nullptr);
  EXPECT_OK(node);
  return *std::move(node);
}

absl::StatusOr<double> Scale(const std::string& text) {
  return ReadScale(*Parse("QK_SCALE: " + text).Find("QK_SCALE"), "config.QK_SCALE");
}

TEST(ReadScale, TakesANumberOrNone) {
  for (const char* none : {"False", "null", "0"}) {
    ASSERT_OK_AND_ASSIGN(const double scale, Scale(none));
    EXPECT_EQ(scale, 0.0) << none;
  }
  ASSERT_OK_AND_ASSIGN(const double scale, Scale("0.25"));
  EXPECT_EQ(scale, 0.25);
}

TEST(ReadScale, NamesWhatIsNone) {
  for (const char* wrong : {"True", "-1", "large", "[1]"}) {
    EXPECT_THAT(Scale(wrong).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.QK_SCALE is ")))
        << wrong;
  }
  EXPECT_THAT(Scale("True").status().message(), HasSubstr("test.yaml:1"));
}

// What MODEL.ACTIVATION_CHECKPOINTING has after the keys of a section T are looked at; "": nothing.
std::string Resolved(const std::string& model) {
  ConfigNode config = Parse("MODEL: " + model);
  EXPECT_OK(RecomputeBlocksIfSet("vit", "T", {"BLOCK", "MLP"}, &config));
  const ConfigNode* const enabled = config.FindPath("MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING");
  const ConfigNode* const splits =
      config.FindPath("MODEL.ACTIVATION_CHECKPOINTING.NUM_ACTIVATION_CHECKPOINTING_SPLITS");
  return enabled == nullptr ? "" : enabled->text() + " " + (splits == nullptr ? "" : splits->text());
}

TEST(RecomputeBlocksIfSet, TurnsItOnForTheTrunk) {
  EXPECT_EQ(Resolved("{TRUNK: {NAME: vit, T: {BLOCK: True}}}"), "true 1000");
  EXPECT_EQ(Resolved("{TRUNK: {NAME: vit_fsdp, T: {MLP: True, BLOCK: False}}}"), "true 1000");
}

TEST(RecomputeBlocksIfSet, LeavesAllElseAsItIs) {
  EXPECT_EQ(Resolved("{TRUNK: {NAME: vit, T: {BLOCK: False}}}"), "");
  EXPECT_EQ(Resolved("{TRUNK: {NAME: vit}}"), "");
  EXPECT_EQ(Resolved("{TRUNK: {NAME: resnet, T: {BLOCK: True}}}"), "");
  EXPECT_EQ(Resolved("{}"), "");
  EXPECT_EQ(Resolved("{TRUNK: {NAME: vit, T: {BLOCK: True}}, ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: "
                     "true, NUM_ACTIVATION_CHECKPOINTING_SPLITS: 3}}"),
            "true 3");
}

std::vector<std::string> WarningsOf(const std::string& sizes, const std::string& transforms,
                                    const std::string& trunk = "vision_transformer_fsdp") {
  const CapturedLog log;
  WarnOfCropSizes("vision_transformer", "VISION_TRANSFORMERS",
                  Parse("MODEL: {TRUNK: {NAME: " + trunk + ", VISION_TRANSFORMERS: " + sizes +
                        "}}\nDATA: {TRAIN: {TRANSFORMS: " + transforms + "}}\n"));
  return log.warnings;
}

TEST(WarnOfCropSizes, NamesCropsThatPatchesDoNotFill_AndPositionsOfAnotherSize) {
  constexpr char kCrops[] = "[{name: ImgPilToMultiCrop, size_crops: [16, 10]}]";
  EXPECT_THAT(
      WarningsOf("{IMAGE_SIZE: 16, PATCH_SIZE: 5}", kCrops),
      ElementsAre("test.yaml:1: config.MODEL.TRUNK.VISION_TRANSFORMERS.PATCH_SIZE is 5, and crops have 16 pixels "
                  "(test.yaml:2), no multiple of it: the last 1 of each row and column are never seen"));
  EXPECT_THAT(
      WarningsOf("{IMAGE_SIZE: 32, PATCH_SIZE: 2}", kCrops),
      ElementsAre("test.yaml:1: config.MODEL.TRUNK.VISION_TRANSFORMERS.IMAGE_SIZE is 32, expected 16, the pixels "
                  "of the largest crops of config.DATA.TRAIN.TRANSFORMS"));
}

TEST(WarnOfCropSizes, IsQuietWhereSizesFit_OrAreNotKnown) {
  constexpr char kCrop[] = "[{name: Resize, size: 30}, {name: RandomResizedCrop, size: 16}, {name: ToTensor}]";
  EXPECT_THAT(WarningsOf("{IMAGE_SIZE: 16, PATCH_SIZE: 4}", kCrop), IsEmpty());
  EXPECT_THAT(WarningsOf("{IMAGE_SIZE: 32, PATCH_SIZE: 5}", "[{name: ToTensor}]"), IsEmpty());
  EXPECT_THAT(WarningsOf("{IMAGE_SIZE: 32, PATCH_SIZE: 5}", kCrop, "resnet"), IsEmpty());
}

}  // namespace
}  // namespace ssl
