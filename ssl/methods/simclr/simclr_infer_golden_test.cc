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

ConfigNode ConfigOf(const ConfigNode& params, const std::string& loss) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("LOSS.name", ConfigNode::FromString(loss));
  config.SetPath(absl::StrCat("LOSS.", loss), *params.Find("config"));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", *params.Find("batch_size_per_replica"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", *params.Find("transforms"));
  config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", *params.Find("collate_function"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", *params.Find("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", *params.Find("num_nodes"));
  return config;
}

TEST(SimclrInferGolden, ResolvedSettingsMatch) {
  int cases = 0;
  golden::RunCategory("infer",
                      {{"infer_loss",
                        [&cases](const golden::Case& golden_case) {
                          const std::string loss = golden_case.params.Find("loss")->text();
                          if (!IsSimclr(loss)) return;  // another method's
                          ++cases;
                          ConfigNode config = ConfigOf(golden_case.params, loss);
                          ASSERT_OK(ResolveSimclr(&config));
                          const auto& outputs = golden_case.steps.at(0).outputs;
                          EXPECT_EQ(*config.FindPath(absl::StrCat("LOSS.", loss)), outputs.at("config").value);
                          EXPECT_EQ(config.FindPath("DATA.TRAIN.COLLATE_FUNCTION")->text(),
                                    outputs.at("collate_function").value.text());
                        }}},
                      /*out_of_scope=*/{"infer_loss_error"});
  EXPECT_GT(cases, 0);
}

}  // namespace
}  // namespace ssl
