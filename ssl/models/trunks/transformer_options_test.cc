// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/transformer_options.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace ssl
