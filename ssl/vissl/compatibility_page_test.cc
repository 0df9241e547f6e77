// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/compatibility_page.h"

#include <string>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/option_catalog.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDefaults[] =
    "# a comment\n"
    "LOSS.name: CrossEntropyLoss\n"
    "OPTIMIZER.weight_decay: 1e-4\n"
    "OPTIMIZER.betas: [.9, 0.999]\n"
    "TEST_ONLY: False\n"
    "DATA.TRAIN.COLLATE_FUNCTION_PARAMS: {}\n";

TEST(CompatibilityPageTest, HasARowForEachKeyInATableForEachSection) {
  ASSERT_OK_AND_ASSIGN(const VisslDefaults defaults, ParseVisslDefaults(kDefaults));
  EXPECT_EQ(defaults.size(), 5u);
  using Status = CatalogEntry::Status;
  const std::string page =
      CompatibilityPage({{"DATA.TRAIN.COLLATE_FUNCTION_PARAMS", "any", "{}", "params", Status::kWorks},
                         {"LOSS.name", "string", "swav_loss", "a | b", Status::kWorks},
                         {"OPTIMIZER.betas", "list of float", "[0.9, 0.999]", "betas", Status::kWorks},
                         {"OPTIMIZER.ours", "int", "1", "ours", Status::kIgnored},
                         {"OPTIMIZER.weight_decay", "float", "0.0001", "decay", Status::kWorks},
                         {"TEST_ONLY", "bool", "false", "test", Status::kNotYet}},
                        defaults);
  EXPECT_THAT(page, HasSubstr("## DATA\n| key |"));
  EXPECT_THAT(page, HasSubstr("| `DATA.TRAIN.COLLATE_FUNCTION_PARAMS` | `{}` |  | works | params |\n"));
  EXPECT_THAT(page, HasSubstr("| `LOSS.name` | `swav_loss` | `CrossEntropyLoss` | works | a \\| b |\n"));
  EXPECT_THAT(page, HasSubstr("| `OPTIMIZER.betas` | `[0.9, 0.999]` |  | works | betas |\n"));
  EXPECT_THAT(page, HasSubstr("| `OPTIMIZER.ours` | `1` | – | ignored | ours |\n"));
  EXPECT_THAT(page, HasSubstr("| `OPTIMIZER.weight_decay` | `0.0001` |  | works | decay |\n"));
  EXPECT_THAT(page, HasSubstr("## Without a section\n| key |"));
  EXPECT_THAT(page, HasSubstr("| `TEST_ONLY` | `false` |  | not yet | test |\n"));
  EXPECT_THAT(page, Not(HasSubstr("## TEST_ONLY")));
}

TEST(CompatibilityPageTest, DefaultsThatAreNoYamlAreRefused) { EXPECT_FALSE(ParseVisslDefaults("LOSS.name: [").ok()); }

}  // namespace
}  // namespace ssl
