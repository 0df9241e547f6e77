// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/help.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing_options.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(FormatHelpRowsTest, ShowsOneAlignedLinePerField) {
  TestingOptions options;
  options.name = "";
  EXPECT_EQ(FormatHelpRows(HelpRows("LOSS", options)),
            "KEY                      TYPE            DEFAULT  RANGE                MEANING\n"
            "LOSS.normalize           bool            true                          Unit rows.\n"
            "LOSS.queue_length        int             0        between 0 and 100    Kept samples.\n"
            "LOSS.temperature         float           0.1      above 0              Divides scores.\n"
            "LOSS.name                string          \"\"                            The method.\n"
            "LOSS.crops               list of int     [2, 6]   at least 1           Crops per size.\n"
            "LOSS.scales              list of float   [0.5]    between 0 and 1      Area.\n"
            "LOSS.devices             list of string  [cpu]    one of 'cpu', 'gpu'  Where.\n"
            "LOSS.params              any             null                          Anything.\n"
            "LOSS.sinkhorn            section                                       Balancing.\n"
            "LOSS.sinkhorn.num_iters  int             3        at least 1           Rounds.\n");
}

TEST(HelpRowsTest, FreeFormDefaults_AreShownInline_LongOnesAreCut) {
  TestingOptions options;
  options.params.SetPath("a.b", ConfigNode::FromInts({1}));
  options.name = "a name that is far too long for a column of a table";
  const std::vector<HelpRow> rows = HelpRows("", options);
  EXPECT_EQ(rows[7].key, "params");
  EXPECT_EQ(rows[7].default_value, "{a: {b: [1]}}");
  EXPECT_EQ(rows[3].default_value, options.name);
  EXPECT_THAT(FormatHelpRows(rows), HasSubstr("  a name that is far too long f...  "));
}

TEST(FormatHelpRowsTest, NoRows_IsEmpty) { EXPECT_EQ(FormatHelpRows({}), ""); }

}  // namespace
}  // namespace ssl
