// SPDX-License-Identifier: Apache-2.0
//
// VISSL's two ways to ask for sharded optimizer state are checked as the one that a run has.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ConfigReport Check(const std::string& token) { return CheckTokens({"config=test/swav_tiny", token}); }

TEST(OptimizerCheckTest, BothWaysToShareOptimizerState_Run) {
  for (const char* token :
       {"config.OPTIMIZER.use_zero=True", "config.OPTIMIZER={name: zero, base_optimizer: {name: adamw}}"}) {
    const ConfigReport report = Check(token);
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << token << "\n" << FormatReport(report);
  }
}

TEST(OptimizerCheckTest, ZeroOfNothing_IsAMistake) {
  const ConfigReport report = Check("config.OPTIMIZER.name=zero");
  EXPECT_THAT(report.mistakes,
              ElementsAre(HasSubstr("config.OPTIMIZER.name is zero, expected the name of another optimizer")));
  EXPECT_THAT(report.missing_components, IsEmpty()) << "it is told once";
}

}  // namespace
}  // namespace ssl
