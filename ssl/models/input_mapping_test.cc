// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/input_mapping.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<MappedInput>> Read(const std::string& text, size_t num_heads = 2) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> tree = ParseYaml("MAP: " + text, "pirl.yaml", &warnings);
  if (!tree.ok()) return tree.status();
  return ReadInputMapping(*tree->Find("MAP"), num_heads, {"res4", "res5avg"});
}

TEST(InputMappingTest, Lists_GiveInputsTheirHeadsInOrder) {
  ASSERT_OK_AND_ASSIGN(const std::vector<MappedInput> inputs,
                       Read("[[images, [res5avg]], [patches, []], [masks, [res4]]]"));
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].name, "images");
  EXPECT_EQ(inputs[0].stage, "res5avg");
  EXPECT_EQ(inputs[0].head, 0u);
  EXPECT_EQ(inputs[1].stage, "");
  EXPECT_EQ(inputs[1].head, 1u);
  EXPECT_EQ(inputs[2].head, 1u) << "the last head serves the rest";
}

TEST(InputMappingTest, Maps_NameTheHead) {
  ASSERT_OK_AND_ASSIGN(const std::vector<MappedInput> inputs,
                       Read("[[images, {feat_names: [res4], head_index: 1}], [patches, {feat_names: []}]]"));
  EXPECT_EQ(inputs[0].stage, "res4");
  EXPECT_EQ(inputs[0].head, 1u);
  EXPECT_EQ(inputs[1].head, 1u) << "its position";
}

TEST(InputMappingTest, WithoutHeads_AllInputsAreMapped) {
  ASSERT_OK_AND_ASSIGN(const std::vector<MappedInput> inputs, Read("[[images, []], [patches, []]]", 0));
  EXPECT_EQ(inputs[1].head, 0u);
  EXPECT_OK(Read("null"));
}

TEST(InputMappingTest, Mistakes_AreNamedWithTheirLine) {
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {"{images: 1}", "pirl.yaml:1: config.MODEL.MULTI_INPUT_HEAD_MAPPING is a map, expected [[input, [stage]], ...]"},
      {"[images]", "pirl.yaml:1: config.MODEL.MULTI_INPUT_HEAD_MAPPING[0] is 'images', expected [input, [stage]]"},
      {"[[images, res4]]", "expected [input, [stage]]"},
      {"[[images, [res4, res5avg]]]", "names 2 stages, expected at most one"},
      {"[[images, [res5]]]", "names the stage 'res5', expected one of res4, res5avg; did you mean"},
      {"[[images, {feat_names: [], head_index: 2}]]", "has head_index 2 of 2 heads"},
      {"[[images, {feat_names: [], additional_keys: [mask]}]]", "has additional_keys (mask), expected none"},
      {"[[images, {feature_names: []}]]", "feature_names"},
      {"[[images, []], [images, []]]", "MAPPING[1] maps the input 'images' a second time"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Read(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
}

}  // namespace
}  // namespace ssl
