// SPDX-License-Identifier: Apache-2.0
//
// What the resolvers make of a loss's settings, against VISSL's own inference.
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/setting_checks.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/vissl/vissl_keys.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Losses that are not there yet. bce_logits_multiple_output_single_target is, but does not read its world_size.
bool IsOutOfScope(const std::string& loss) {
  static const auto* const names = new std::set<std::string>{
      "bce_logits_multiple_output_single_target", "deepclusterv2_loss",   "dino_loss",
      "multicrop_simclr_info_nce_loss",           "simclr_info_nce_loss", "swav_momentum_loss"};
  return names->count(loss) > 0;
}

ConfigNode ConfigOf(const golden::Case& test_case) {
  const ConfigNode& params = test_case.params;
  const std::string loss = params.Find("loss")->text();
  ConfigNode config = ConfigNode::Map();
  config.SetPath("LOSS.name", *params.Find("loss"));
  for (const char* key : {"embedding_dim", "temperature", "num_crops", "num_prototypes", "queue.queue_length"}) {
    config.SetPath(absl::StrCat("LOSS.", loss, ".", key), *params.Find("config")->FindPath(key));
  }
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", *params.Find("batch_size_per_replica"));
  config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", *params.Find("collate_function"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", *params.Find("transforms"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", *params.Find("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", *params.Find("num_nodes"));
  config.SetPath("MODEL.HEAD.PARAMS", *params.Find("heads"));
  return config;
}

class InferenceGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterBuiltins(&registries_));
    ASSERT_OK(RegisterVisslKeys(&registries_));
  }

  void CheckInferred(const golden::Case& test_case) {
    const std::string loss = test_case.params.Find("loss")->text();
    if (IsOutOfScope(loss)) return;
    ++compared_;
    ASSERT_EQ(loss, "swav_loss");
    ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(ConfigOf(test_case), registries_));
    const ConfigNode& expected = test_case.steps[0].outputs.at("config").value;
    for (const char* key : {"embedding_dim", "num_crops", "num_prototypes", "queue.queue_length"}) {
      EXPECT_TRUE(*config.FindPath(absl::StrCat("LOSS.swav_loss.", key)) == *expected.FindPath(key)) << key;
    }
    EXPECT_THAT(ContradictingSettings(config), IsEmpty());
  }

  void CheckRefused(const golden::Case& test_case) {
    ++compared_;
    const absl::StatusOr<ConfigNode> config = ResolveConfig(ConfigOf(test_case), registries_);
    if (config.ok()) {
      EXPECT_EQ(ContradictingSettings(*config).size(), 1u);
    } else {
      EXPECT_THAT(config.status().message(), HasSubstr("swav_head"));
    }
  }

  Registries registries_;
  int compared_ = 0;
};

TEST_F(InferenceGolden, LossSettingsMatch) {
  golden::RunCategory("infer",
                      {{"infer_loss", [this](const golden::Case& test_case) { CheckInferred(test_case); }},
                       {"infer_loss_error", [this](const golden::Case& test_case) { CheckRefused(test_case); }}});
  EXPECT_GE(compared_, 11);
}

}  // namespace
}  // namespace ssl
