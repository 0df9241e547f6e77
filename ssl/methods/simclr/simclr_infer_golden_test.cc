// SPDX-License-Identifier: Apache-2.0
//
// What VISSL fills in for SimCLR from other settings.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/methods/simclr/simclr_resolver.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

bool IsSimclr(const std::string& loss) { return absl::EndsWith(loss, "simclr_info_nce_loss"); }

ConfigNode ConfigOf(const golden::Case& golden_case, const std::string& loss) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("LOSS.name", ConfigNode::FromString(loss));
  config.SetPath(absl::StrCat("LOSS.", loss), golden_case.Param("config"));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", golden_case.Param("batch_size_per_replica"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", golden_case.Param("transforms"));
  config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", golden_case.Param("collate_function"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", golden_case.Param("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", golden_case.Param("num_nodes"));
  return config;
}

void CheckInferred(const golden::Case& golden_case) {
  const std::string& loss = golden_case.Text("loss");
  ConfigNode config = ConfigOf(golden_case, loss);
  ASSERT_OK(ResolveSimclr(&config));
  const golden::Step& step = golden_case.steps[0];
  EXPECT_EQ(config.Section("LOSS").Section(loss), step.Expected("config").value);
  EXPECT_EQ(config.Section("DATA.TRAIN").Find("COLLATE_FUNCTION")->text(),
            step.Expected("collate_function").value.text());
}

std::string LimitOf(const golden::Case& golden_case) {
  const std::string& loss = golden_case.Text("loss");
  return IsSimclr(loss) ? "" : absl::StrCat("of ", loss);
}

TEST(SimclrInferGolden, ResolvedSettingsMatch) {
  golden::RunCategory("infer", {{"infer_loss", &CheckInferred}}, /*out_of_scope=*/{"infer_loss_error"}, &LimitOf);
}

}  // namespace
}  // namespace ssl
