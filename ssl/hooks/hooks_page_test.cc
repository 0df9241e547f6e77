// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/hooks_page.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::string Page() {
  Registries registries;
  EXPECT_OK(RegisterHooks(&registries));
  return HooksPage(registries);
}

TEST(HooksPageTest, AHook_HasItsOptionsAndItsNamesElsewhere) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("### ema\nmoving averages of the model, and meters of the averaged model. VISSL: "
                              "`EmaHook`.\n"));
  EXPECT_THAT(page, HasSubstr("| `HOOKS.EMA_MODEL.DECAY` | float | `0.9999` | between 0 and 1 | what is kept"));
  EXPECT_THAT(page, HasSubstr("| `METERS.model_output_mask` | bool |"));
  EXPECT_THAT(page, HasSubstr("| `tolerance` | float | `1.0` | above 0 |"));
}

TEST(HooksPageTest, ThePageIsUpToDate) {
  const std::filesystem::path root = std::filesystem::canonical("WORKSPACE").parent_path();
  std::ifstream file(root / "docs/hooks.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == Page()) << "make it anew:\n  ./bazelw run //ssl/tools:print_hooks_page > docs/hooks.md";
}

}  // namespace
}  // namespace ssl
