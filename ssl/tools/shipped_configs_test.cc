// SPDX-License-Identifier: Apache-2.0
//
// The configurations that come with the program have no mistakes.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/config/compose.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/tools/check_config.h"
#include "ssl/vissl/vissl_keys.h"

namespace ssl {
namespace {

TEST(ShippedConfigsTest, HaveNoMistakes) {
  Registries registries;
  ASSERT_OK(RegisterBuiltins(&registries));
  ASSERT_OK(RegisterVisslKeys(&registries));
  ComposeRequest request;
  request.defaults = ConfigNode::Map();
  AddVisslRootKeys(&request.defaults);
  request.defaults.Set("engine_name", ConfigNode::FromString("train"));
  request.defaults.Set("config", registries.options.Defaults());
  int checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("configs/config")) {
    if (entry.path().extension() != ".yaml") continue;
    request.tokens = {absl::StrCat("config=", entry.path().string())};
    const ConfigReport report = CheckConfig(request, registries);
    EXPECT_TRUE(report.mistakes.empty()) << entry.path() << "\n" << FormatReport(report);
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

}  // namespace
}  // namespace ssl
