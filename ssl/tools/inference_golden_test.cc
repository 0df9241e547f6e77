// SPDX-License-Identifier: Apache-2.0
//
// What the resolvers make of a loss's settings, against VISSL's own inference.
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

using ::testing::IsEmpty;
using ::testing::Not;

// This test compares the settings of SwAV; those of SimCLR have a test beside their method.
constexpr char kLoss[] = "swav_loss";

std::string LimitOf(const golden::Case& test_case) {
  const std::string& loss = test_case.Text("loss");
  return loss == kLoss ? "" : absl::StrCat("of ", loss);
}

ConfigNode ConfigOf(const golden::Case& test_case) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("LOSS.name", test_case.Param("loss"));
  for (const char* key : {"embedding_dim", "temperature", "num_crops", "num_prototypes", "queue.queue_length"}) {
    const ConfigNode* const value = test_case.Param("config").FindPath(key);
    if (value != nullptr) config.SetPath(absl::StrCat("LOSS.", kLoss, ".", key), *value);
  }
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", test_case.Param("batch_size_per_replica"));
  config.SetPath("DATA.TRAIN.COLLATE_FUNCTION", test_case.Param("collate_function"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", test_case.Param("transforms"));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", test_case.Param("num_proc_per_node"));
  config.SetPath("DISTRIBUTED.NUM_NODES", test_case.Param("num_nodes"));
  config.SetPath("MODEL.HEAD.PARAMS", test_case.Param("heads"));
  return config;
}

class InferenceGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterBuiltins(&registries_));
    ASSERT_OK(RegisterVisslKeys(&registries_));
  }

  void CheckInferred(const golden::Case& test_case) {
    ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(ConfigOf(test_case), registries_));
    const ConfigNode& expected = test_case.steps[0].Expected("config").value;
    for (const char* key : {"embedding_dim", "num_crops", "num_prototypes", "queue.queue_length"}) {
      const ConfigNode* const wanted = expected.FindPath(key);
      const ConfigNode* const resolved = config.FindPath(absl::StrCat("LOSS.swav_loss.", key));
      if (wanted == nullptr) continue;
      ASSERT_NE(resolved, nullptr) << key;
      EXPECT_TRUE(*resolved == *wanted) << key;
    }
    EXPECT_THAT(ContradictingSettings(config, /*trains=*/false), IsEmpty());
  }

  void CheckRefused(const golden::Case& test_case) {
    const absl::StatusOr<ConfigNode> config = ResolveConfig(ConfigOf(test_case), registries_);
    if (config.ok()) {
      EXPECT_THAT(ContradictingSettings(*config, /*trains=*/false), Not(IsEmpty()));
    } else {
      EXPECT_THAT(config, StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }

  Registries registries_;
};

TEST_F(InferenceGolden, LossSettingsMatch) {
  golden::RunCategory("infer",
                      {{"infer_loss", [this](const golden::Case& test_case) { CheckInferred(test_case); }},
                       {"infer_loss_error", [this](const golden::Case& test_case) { CheckRefused(test_case); }}},
                      {}, &LimitOf);
}

}  // namespace
}  // namespace ssl
