// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(CommandTextTest, IsWhatAShellTakesApart) {
  EXPECT_EQ(
      CommandText({"bin/ssl_main", "--config=quickstart", "engine_name=[train, knn]", "a='b'", "", "~/x", "$HOME"}),
      "bin/ssl_main --config=quickstart 'engine_name=[train, knn]' 'a='\\''b'\\''' '' '~/x' '$HOME'");
  EXPECT_EQ(CommandText({"two\nlines"}), "'two\\nlines'") << "a log has a line for each command";
}

TEST(CommandTextTest, ThisProcessHasOne) { EXPECT_THAT(CommandOfThisProcess(), ::testing::HasSubstr("tools_test")); }

}  // namespace
}  // namespace ssl
