// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/name_patterns.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool Matches(const std::vector<std::string>& entries, const std::string& name) {
  absl::StatusOr<NamePatterns> patterns = NamePatterns::Make(entries);
  EXPECT_OK(patterns);
  return patterns.ok() && patterns->Match(name);
}

TEST(NamePatterns, PlainEntry_IsAPartOfTheName) {
  EXPECT_TRUE(Matches({"prototypes0", "layer4.1.bn2"}, "trunk.layer4.1.bn2.weight"));
  EXPECT_FALSE(Matches({"layer4.1.bn2"}, "trunk.layer4.0.bn2.weight"));
}

TEST(NamePatterns, PointInAPlainEntry_IsAPoint) { EXPECT_FALSE(Matches({"layer1.0"}, "layer1x0.weight")); }

TEST(NamePatterns, EntryWithPatternCharacters_MatchesAnywhere) {
  EXPECT_TRUE(Matches({R"(\.bias$)"}, "heads.0.clf.bias"));
  EXPECT_FALSE(Matches({R"(\.bias$)"}, "heads.0.bias.weight"));
  EXPECT_TRUE(Matches({R"(blocks\.[0-3]\.)"}, "trunk.blocks.2.norm1.weight"));
  EXPECT_FALSE(Matches({R"(blocks\.[0-3]\.)"}, "trunk.blocks.12.norm1.weight"));
  EXPECT_TRUE(Matches({"pos_embed|cls_token"}, "trunk.cls_token"));
}

TEST(NamePatterns, NoEntries_MatchNothing) { EXPECT_FALSE(Matches({}, "trunk.conv1.weight")); }

TEST(NamePatterns, UnreadablePattern_IsQuotedWithTheReason) {
  EXPECT_THAT(NamePatterns::Make({"bn1", "(bn2"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'(bn2' is no RE2 pattern"), HasSubstr("missing )"))));
}

}  // namespace
}  // namespace ssl
