// SPDX-License-Identifier: Apache-2.0
//
// The ways of writing that occur in VISSL's own config files, each with its count there in mind.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The tree, or a scalar with the error or the warnings that the expectation then shows.
ConfigNode Parse(absl::string_view text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "f.yaml", &warnings);
  EXPECT_THAT(warnings, IsEmpty());
  return node.ok() ? *node : ConfigNode::Scalar(node.status().ToString());
}

std::string TextAt(const ConfigNode& root, absl::string_view path) {
  const ConfigNode* node = root.FindPath(path);
  return node == nullptr ? absl::StrCat("no ", path) : node->text();
}

double NumberOf(absl::string_view text) {
  const absl::StatusOr<double> number = Parse(absl::StrCat("k: ", text)).Find("k")->AsDouble();
  EXPECT_OK(number);
  return number.value_or(-1.0);
}

TEST(VisslYamlTest, FlowList_TakesTrailingCommasCommentsAndQuotedKeys) {
  const ConfigNode root = Parse(
      "HEAD:\n"
      "  PARAMS: [\n"
      "    # a head of its own\n"
      "    [\"swav_head\", {\"dims\": [2048, 128,], 'use_bn': True, \"x\":1,}],\n"
      "    # end\n"
      "  ]\n"
      "  NEXT: 2\n");
  EXPECT_EQ(TextAt(root, "HEAD.PARAMS.0.0"), "swav_head");
  EXPECT_EQ(TextAt(root, "HEAD.PARAMS.0.1.dims.1"), "128");
  EXPECT_EQ(TextAt(root, "HEAD.PARAMS.0.1.use_bn"), "True");
  EXPECT_EQ(TextAt(root, "HEAD.PARAMS.0.1.x"), "1");
  EXPECT_EQ(root.FindPath("HEAD.PARAMS.0.1.dims")->items().size(), 2u);
  EXPECT_EQ(root.FindPath("HEAD.PARAMS")->items().size(), 1u);
  EXPECT_EQ(TextAt(root, "HEAD.NEXT"), "2");
  EXPECT_EQ(root.FindPath("HEAD.PARAMS.0.0")->location().line, 4);
}

TEST(VisslYamlTest, NumbersAsVisslWritesThem_Convert) {
  const ConfigNode root = Parse("a: 1e-5\nb: 1e-08\nc: 16_384\nd: .25\ne: False\nf: TRUE\n");
  ASSERT_OK_AND_ASSIGN(const double a, root.Find("a")->AsDouble());
  ASSERT_OK_AND_ASSIGN(const double b, root.Find("b")->AsDouble());
  ASSERT_OK_AND_ASSIGN(const int64_t c, root.Find("c")->AsInt());
  ASSERT_OK_AND_ASSIGN(const double d, root.Find("d")->AsDouble());
  ASSERT_OK_AND_ASSIGN(const bool e, root.Find("e")->AsBool());
  ASSERT_OK_AND_ASSIGN(const bool f, root.Find("f")->AsBool());
  EXPECT_EQ(a, 1e-5);
  EXPECT_EQ(b, 1e-8);
  EXPECT_EQ(c, 16384);
  EXPECT_EQ(d, 0.25);
  EXPECT_FALSE(e);
  EXPECT_TRUE(f);
}

TEST(VisslYamlTest, MissingValueAndNullWords_AreNull_QuotedOnesAreNot) {
  const ConfigNode root = Parse("a:\nb: null\nc: ~\nd: \"null\"\ne: ''\nf: None\nname:\n");
  for (const char* key : {"a", "b", "c", "name"}) EXPECT_TRUE(root.Find(key)->is_null()) << key;
  EXPECT_EQ(root.Find("d")->text(), "null");
  EXPECT_TRUE(root.Find("d")->quoted());
  EXPECT_TRUE(root.Find("e")->is_scalar());
  EXPECT_EQ(root.Find("f")->text(), "None");
  EXPECT_FALSE(root.Find("f")->quoted());
  EXPECT_EQ(root.Find("name")->location().line, 7);
}

TEST(VisslYamlTest, DuplicateKeys_KeepTheLastAndWarnWithBothLines) {
  std::vector<std::string> warnings;
  ASSERT_OK_AND_ASSIGN(const ConfigNode root, ParseYaml("a: 1\nb: 2\na: 3\na:\n  c: 4\n", "f.yaml", &warnings));
  EXPECT_EQ(TextAt(root, "a.c"), "4");
  EXPECT_EQ(root.entries().size(), 2u);
  EXPECT_THAT(warnings, ElementsAre("f.yaml:3: key 'a' stands twice, first in line 1",
                                    "f.yaml:4: key 'a' stands twice, first in line 1"));
}

TEST(VisslYamlTest, FloatsInEveryNotation_AreNumbers) {
  EXPECT_EQ(NumberOf("1e-5"), 1e-5);
  EXPECT_EQ(NumberOf("1e-08"), 1e-8);
  EXPECT_EQ(NumberOf("1E+3"), 1000.0);
  EXPECT_EQ(NumberOf("5.e-4"), 5e-4);
  EXPECT_EQ(NumberOf(".25"), 0.25);
  EXPECT_EQ(NumberOf("-.9"), -0.9);
  EXPECT_EQ(NumberOf("1."), 1.0);
  EXPECT_EQ(NumberOf("16_384"), 16384.0);
  EXPECT_EQ(NumberOf("\"0.1\""), 0.1);
}

TEST(VisslYamlTest, TrailingCommas_EndListsAndMapsOnOneLineAndOnMany) {
  for (const char* text : {"k: [1, 2,]\nn: 3\n", "k: [1, 2, ]\nn: 3\n", "k: [\n  1,\n  2,\n]\nn: 3\n",
                           "k:\n  [\n    1, 2,\n    # the end\n  ]\nn: 3\n", "{k: [1, 2,], n: 3,}",
                           "{\n  k: [1,\n      2\n  ],\n  n: 3,\n}\n"}) {
    const ConfigNode root = Parse(text);
    ASSERT_NE(root.Find("k"), nullptr) << text << root.text();
    EXPECT_EQ(*root.Find("k"), ConfigNode::FromInts({1, 2})) << text;
    EXPECT_EQ(TextAt(root, "n"), "3") << text;
  }
}

TEST(VisslYamlTest, CommentLinesInFlowLists_AreSkipped) {
  const ConfigNode root = Parse(
      "PARAMS: [\n"
      "  # first, with [ brackets ], commas and 'quotes\n"
      "  [\"mlp\", {\"dims\": [2048, 1000]}], # after an item\n"
      "#  at the margin\n"
      "  [\"mlp\", {\"dims\": [1000]}],\n"
      "  # [\"mlp\", {\"dims\": [500]}],\n"
      "]\n");
  ASSERT_NE(root.Find("PARAMS"), nullptr) << root.text();
  EXPECT_EQ(root.Find("PARAMS")->items().size(), 2u);
  EXPECT_EQ(TextAt(root, "PARAMS.1.1.dims.0"), "1000");
}

TEST(VisslYamlTest, JsonStyleMaps_HaveTheirKeysWithoutQuotes) {
  const ConfigNode root = Parse("k: {\"a\":1, \"b\" : [2], 'c': \"x\",\n    \"d\": {\"e\": null}}\n");
  EXPECT_EQ(TextAt(root, "k.a"), "1");
  EXPECT_EQ(TextAt(root, "k.b.0"), "2");
  EXPECT_EQ(TextAt(root, "k.c"), "x");
  EXPECT_TRUE(root.FindPath("k.d.e")->is_null());
}

TEST(VisslYamlTest, BooleansInEveryCase_AreBooleans) {
  for (const char* text : {"True", "true", "TRUE"}) {
    ASSERT_OK_AND_ASSIGN(const bool value, Parse(absl::StrCat("k: ", text)).Find("k")->AsBool());
    EXPECT_TRUE(value) << text;
  }
  for (const char* text : {"False", "false", "FALSE"}) {
    ASSERT_OK_AND_ASSIGN(const bool value, Parse(absl::StrCat("k: ", text)).Find("k")->AsBool());
    EXPECT_FALSE(value) << text;
  }
}

TEST(VisslYamlTest, ListsOfMaps_StandAtTheirKeyOrIndented) {
  for (const char* text :
       {"TRANSFORMS:\n- name: A\n  p: 1\n- name: B\n", "TRANSFORMS:\n  - name: A\n    p: 1\n  - name: B\n"}) {
    const ConfigNode root = Parse(text);
    EXPECT_EQ(TextAt(root, "TRANSFORMS.0.p"), "1") << text;
    EXPECT_EQ(TextAt(root, "TRANSFORMS.1.name"), "B") << text;
  }
}

TEST(VisslYamlTest, RootKeys_StandBesideConfig) {
  const ConfigNode root = Parse(
      "# @package _global_\n"
      "VERSION: 1\n"
      "engine_name: extract_features\n"
      "node_id: 0\n"
      "hydra:\n"
      "  verbose: True\n"
      "config:\n"
      "  VERBOSE: False\n");
  EXPECT_EQ(TextAt(root, "VERSION"), "1");
  EXPECT_EQ(TextAt(root, "engine_name"), "extract_features");
  EXPECT_EQ(TextAt(root, "node_id"), "0");
  EXPECT_EQ(TextAt(root, "hydra.verbose"), "True");
  EXPECT_EQ(TextAt(root, "config.VERBOSE"), "False");
}

}  // namespace
}  // namespace ssl
