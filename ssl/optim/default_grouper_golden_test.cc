// SPDX-License-Identifier: Apache-2.0
//
// The weight decay of every parameter of VISSL's small golden models.
#include <ATen/ops/ones.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "ssl/optim/default_grouper.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// The golden models name no layer types; only normalisation layers have one-dimensional weights in them.
std::vector<NamedParameter> GoldenModel(const golden::Case& golden_case) {
  std::vector<NamedParameter> parameters;
  for (const ConfigNode& entry : golden_case.steps[0].outputs.at("parameters").value.items()) {
    const std::string& name = entry.items()[0].text();
    const bool is_norm = absl::EndsWith(name, ".weight") && entry.items()[1].items().size() == 1;
    const bool trainable = entry.items()[2].AsBool().value_or(false);
    parameters.push_back({name, at::ones({1}).set_requires_grad(trainable), is_norm});
  }
  return parameters;
}

void CheckGroups(const golden::Case& golden_case) {
  const ConfigNode& optimizer = *golden_case.params.Find("optimizer");
  const ConfigNode* constructor = optimizer.Find("param_group_constructor");
  // "dino", "lr_decay" and own settings of the head are not in this package.
  if (constructor != nullptr && constructor->text() != "default") return;
  if (optimizer.Find("head_optimizer_params") != nullptr) return;
  TestRun run(ConfigNode::Map());
  ASSERT_OK_AND_ASSIGN(const auto grouper, MakeDefaultGrouperFromConfig(optimizer, run.context()));
  ASSERT_OK_AND_ASSIGN(const auto groups, grouper->Group(GoldenModel(golden_case)));

  std::set<std::string> expected_regularized;
  std::set<std::string> expected_unregularized;
  for (const ConfigNode& group : golden_case.steps[0].outputs.at("groups").value.items()) {
    const bool regularized = group.Find("weight_decay")->AsDouble().value_or(0.0) > 0.0;
    for (const ConfigNode& name : group.Find("names")->items()) {
      (regularized ? expected_regularized : expected_unregularized).insert(name.text());
    }
  }
  std::set<std::string> regularized;
  std::set<std::string> unregularized;
  for (const ParameterGroup& group : groups) {
    (group.weight_decay > 0.0 ? regularized : unregularized).insert(group.names.begin(), group.names.end());
  }
  EXPECT_EQ(regularized, expected_regularized);
  EXPECT_EQ(unregularized, expected_unregularized);
}

TEST(DefaultGrouperGolden, WeightDecayOfEveryParameterMatches) {
  golden::RunCategory("param_groups", {{"param_groups", &CheckGroups}});
}

}  // namespace
}  // namespace ssl
