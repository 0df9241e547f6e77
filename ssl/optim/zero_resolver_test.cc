// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/zero_resolver.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(ZeroResolver, BaseOptimizer_BecomesTheOptimizerOfUseZero) {
  ConfigNode config = Yaml(
      "OPTIMIZER:\n  name: zero\n  momentum: 0.5\n  larc_config: {clip: true, eps: 1e-3}\n"
      "  base_optimizer: {name: sgd, momentum: 0.9, use_larc: true, larc_config: {clip: false}}\n");
  ASSERT_OK(ResolveZero(&config));
  const ConfigNode& optimizer = *config.Find("OPTIMIZER");
  EXPECT_EQ(optimizer.Find("name")->text(), "sgd");
  EXPECT_EQ(optimizer.Find("momentum")->text(), "0.9");
  EXPECT_TRUE(*optimizer.Find("use_larc")->AsBool());
  EXPECT_FALSE(*optimizer.FindPath("larc_config.clip")->AsBool());
  EXPECT_EQ(optimizer.FindPath("larc_config.eps")->text(), "1e-3");
  EXPECT_TRUE(*optimizer.Find("use_zero")->AsBool());
  EXPECT_TRUE(optimizer.Find("base_optimizer")->is_null());
  const ConfigNode resolved = config;
  ASSERT_OK(ResolveZero(&config));
  EXPECT_EQ(config, resolved) << "once more changes nothing";
}

TEST(ZeroResolver, OtherOptimizers_StayAsTheyAre) {
  for (const char* text : {"OPTIMIZER: {name: sgd, use_zero: true}", "OPTIMIZER: {base_optimizer: null}", "{}"}) {
    ConfigNode config = Yaml(text);
    const ConfigNode before = config;
    ASSERT_OK(ResolveZero(&config));
    EXPECT_EQ(config, before);
  }
}

TEST(ZeroResolver, HalfOfIt_IsRefusedWithItsPlace) {
  for (const char* base :
       {"", "  base_optimizer: {momentum: 0.9}\n", "  base_optimizer: {name: zero}\n", "  base_optimizer: sgd\n"}) {
    ConfigNode config = Yaml(absl::StrCat("OPTIMIZER:\n  name: zero\n", base));
    EXPECT_THAT(ResolveZero(&config),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.yaml:2: config.OPTIMIZER.name is zero")));
  }
  ConfigNode config = Yaml("OPTIMIZER:\n  name: adam\n  base_optimizer: {name: sgd}\n");
  EXPECT_THAT(ResolveZero(&config), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("test.yaml:3: config.OPTIMIZER.base_optimizer is set")));
}

}  // namespace
}  // namespace ssl
