// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/left_at_default.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

class LeftAtDefaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr char kDefaults[] = "{SPEED: 2, SIZES: [1, 2], CAR: {COLOR: red, PARTS: {}}}";
    ASSERT_OK_AND_ASSIGN(defaults_, ParseYaml(kDefaults, "", nullptr));
    defaults_.Relocate({"", -1});  // as OptionCatalog has them
    config_ = defaults_;
  }

  void Merge(const std::string& yaml) {
    ASSERT_OK_AND_ASSIGN(const ConfigNode more, ParseYaml(yaml, "mine.yaml", nullptr));
    MergeInto(&config_, more);
  }

  bool IsLeft(const std::string& path) const {
    return IsLeftAtDefault(config_.FindPath(path), defaults_.FindPath(path));
  }

  ConfigNode defaults_;
  ConfigNode config_;
};

TEST_F(LeftAtDefaultTest, DefaultsThemselvesAre) { EXPECT_TRUE(IsLeft("")); }

TEST_F(LeftAtDefaultTest, EqualValueOfAFileIsNot) {
  Merge("SPEED: 2");
  EXPECT_FALSE(IsLeft("SPEED"));
  EXPECT_FALSE(IsLeft(""));
  EXPECT_TRUE(IsLeft("CAR"));
}

TEST_F(LeftAtDefaultTest, EqualValueOfAProgramIsNot) {
  config_.SetPath("SPEED", ConfigNode::FromInt(2));
  EXPECT_FALSE(IsLeft("SPEED"));
}

TEST_F(LeftAtDefaultTest, SectionIs_WhereNoneOfItsKeysIsSet) {
  Merge("CAR: {PARTS: {}}");
  EXPECT_TRUE(IsLeft("CAR"));
  Merge("CAR: {COLOR: red}");
  EXPECT_FALSE(IsLeft("CAR"));
}

TEST_F(LeftAtDefaultTest, SectionWithAKeyThatHasNoDefaultIsNot) {
  Merge("CAR: {PARTS: {wheel: 4}}");
  EXPECT_FALSE(IsLeft("CAR.PARTS"));
  EXPECT_TRUE(IsLeft("CAR.COLOR"));
}

TEST_F(LeftAtDefaultTest, ListIs_WhereNoItemIsReplaced) {
  EXPECT_TRUE(IsLeft("SIZES"));
  config_.SetPath("SIZES.1", ConfigNode::FromInt(2));
  EXPECT_FALSE(IsLeft("SIZES"));
}

TEST_F(LeftAtDefaultTest, AbsentValueIs_AndOneWithoutADefaultIsNot) {
  EXPECT_TRUE(IsLeft("WHEELS"));
  config_.SetPath("WHEELS", ConfigNode::FromInt(4));
  EXPECT_FALSE(IsLeft("WHEELS"));
}

}  // namespace
}  // namespace ssl
