// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/option_catalog.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing_options.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Options> MakeOptions() { return std::make_unique<TestingOptions>(); }
std::unique_ptr<Options> MakeSection() { return std::make_unique<TestingSection>(); }

TEST(OptionCatalogTest, Defaults_HoldEveryKeyAtItsPlace) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeOptions));
  ASSERT_OK(catalog.Add("LOSS", MakeSection));
  ASSERT_OK(catalog.Add("", MakeSection));
  const ConfigNode defaults = catalog.Defaults();
  EXPECT_EQ(defaults.FindPath("LOSS.swav_loss.sinkhorn.num_iters")->text(), "3");
  EXPECT_EQ(defaults.FindPath("LOSS.num_iters")->text(), "3");
  EXPECT_EQ(defaults.FindPath("num_iters")->text(), "3");
  EXPECT_TRUE(defaults.FindPath("LOSS.swav_loss.params")->free_form());
  EXPECT_THAT(catalog.Paths(), ElementsAre("LOSS.swav_loss", "LOSS", ""));
}

TEST(OptionCatalogTest, KeyDeclaredTwice_IsRefusedAndChangesNothing) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS", MakeOptions));
  const ConfigNode before = catalog.Defaults();
  EXPECT_EQ(catalog.Add("LOSS.sinkhorn", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.sinkhorn.num_iters' is declared twice"));
  EXPECT_EQ(catalog.Add("LOSS.name", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.name' is declared twice"));
  EXPECT_EQ(catalog.Add("LOSS.params.x", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.params' is declared twice"));
  EXPECT_EQ(catalog.Defaults(), before);
  EXPECT_THAT(catalog.Paths(), ElementsAre("LOSS"));
}

TEST(OptionCatalogTest, BrokenRegistrations_AreRefused) {
  OptionCatalog catalog;
  EXPECT_EQ(catalog.Add("A..B", MakeSection),
            absl::InvalidArgumentError("option catalog: path 'A..B' has an empty part"));
  EXPECT_EQ(catalog.Add("A", nullptr), absl::InvalidArgumentError("option catalog: factory of 'A' makes no options"));
  EXPECT_EQ(catalog.Add("A", [] { return std::unique_ptr<Options>(); }),
            absl::InvalidArgumentError("option catalog: factory of 'A' makes no options"));
}

TEST(OptionCatalogTest, Help_ShowsTheKeysThatBeginWithThePrefix) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeOptions));
  ASSERT_OK(catalog.Add("MACHINE", MakeSection));
  for (const char* prefix : {"LOSS.swav_loss.sink", "config.LOSS.swav_loss.sinkhorn"}) {
    EXPECT_EQ(catalog.Help(prefix),
              "KEY                                       TYPE     DEFAULT  RANGE       MEANING\n"
              "config.LOSS.swav_loss.sinkhorn            section                       Balancing.\n"
              "config.LOSS.swav_loss.sinkhorn.num_iters  int      3        at least 1  Rounds.\n")
        << prefix;
  }
  for (const char* prefix : {"", "config", "config."}) {
    EXPECT_THAT(catalog.Help(prefix), HasSubstr("config.MACHINE.num_iters"));
    EXPECT_THAT(catalog.Help(prefix), HasSubstr("config.LOSS.swav_loss.name"));
  }
  EXPECT_THAT(catalog.Help("MACHINE"), Not(HasSubstr("swav")));
}

TEST(OptionCatalogTest, HelpOfNothing_NamesTheNearestKey) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeSection));
  EXPECT_EQ(catalog.Help("LOSS.swav_los.num"),
            "no option begins with 'config.LOSS.swav_los.num'"
            "; did you mean 'config.LOSS.swav_loss'?\n");
  EXPECT_EQ(catalog.Help("X"), "no option begins with 'config.X'\n");
}

}  // namespace
}  // namespace ssl
