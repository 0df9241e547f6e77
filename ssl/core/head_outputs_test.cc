// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/head_outputs.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/config/yaml.h"

namespace ssl {
namespace {

int64_t OutputsOf(const std::string& heads) {
  return LastHeadOutputs(*ParseYaml("MODEL: {HEAD: {PARAMS: " + heads + "}}", "run.yaml", nullptr));
}

TEST(LastHeadOutputsTest, AreTheLastDimensionOfTheLastHead) {
  EXPECT_EQ(OutputsOf("[[mlp, {dims: [64, 10]}]]"), 10);
  EXPECT_EQ(OutputsOf("[[mlp, {dims: [64, 10]}], [mlp, {dims: [10, 4]}]]"), 4);
}

// One list of heads for each feature: the last head of the last one counts.
TEST(LastHeadOutputsTest, HeadsOfSeveralFeatures_StandInListsOfTheirOwn) {
  EXPECT_EQ(OutputsOf("[[[mlp, {dims: [64, 10]}]], [[mlp, {dims: [64, 8]}], [mlp, {dims: [8, 5]}]]]"), 5);
  EXPECT_EQ(OutputsOf("[[mlp, {dims: [64, 10]}], [[mlp, {dims: [64, 6]}]]]"), 6);
}

TEST(LastHeadOutputsTest, HeadThatDoesNotTell_IsZero) {
  for (const char* heads : {"[]", "[[identity]]", "[[identity, {}]]", "[[mlp, {dims: []}]]", "[[mlp, {dims: [64, x]}]]",
                            "[[mlp, {dims: [64, 10]}], [identity, {}]]"}) {
    EXPECT_EQ(OutputsOf(heads), 0) << heads;
  }
  EXPECT_EQ(LastHeadOutputs(ConfigNode::Map()), 0) << "no section";
}

}  // namespace
}  // namespace ssl
