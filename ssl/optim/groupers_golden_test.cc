// SPDX-License-Identifier: Apache-2.0
//
// Learning rate and weight decay of every parameter of VISSL's small golden models, by every parameter grouping.
#include <ATen/ops/ones.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/optim/test_run.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// The values of the golden models' schedules at the start.
const std::map<std::string, double>& LearningRates() {
  static const auto* const rates = new std::map<std::string, double>{{"lr", 0.5}, {"lr_head", 0.25}};
  return *rates;
}

struct Settings {
  double learning_rate = 0.0;
  double weight_decay = 0.0;
};

// The golden models name no layer types; only normalisation layers have one-dimensional weights in them.
std::vector<NamedParameter> GoldenModel(const golden::Case& golden_case) {
  std::vector<NamedParameter> parameters;
  for (const ConfigNode& entry : golden_case.steps[0].Expected("parameters").value.items()) {
    if (entry.items().size() < 3) {
      ADD_FAILURE() << "a parameter is not [name, shape, trainable]";
      continue;
    }
    const std::string& name = entry.items()[0].text();
    const bool is_norm = absl::EndsWith(name, ".weight") && entry.items()[1].items().size() == 1;
    const bool trainable = entry.items()[2].AsBool().value_or(false);
    parameters.push_back({name, at::ones({1}).set_requires_grad(trainable), is_norm});
  }
  return parameters;
}

std::map<std::string, Settings> ExpectedSettings(const golden::Case& golden_case) {
  std::map<std::string, Settings> expected;
  for (const ConfigNode& group : golden_case.steps[0].Expected("groups").value.items()) {
    const ConfigNode* const names = group.Find("names");
    const ConfigNode* const rate = group.Find("lr");
    const ConfigNode* const decay = group.Find("weight_decay");
    if (names == nullptr || rate == nullptr || decay == nullptr) {
      ADD_FAILURE() << "a group has no names, lr or weight_decay";
      continue;
    }
    const Settings settings = {rate->AsDouble().value_or(-1.0), decay->AsDouble().value_or(-1.0)};
    for (const ConfigNode& name : names->items()) expected[name.text()] = settings;
  }
  return expected;
}

std::string ConstructorOf(const golden::Case& golden_case) {
  const ConfigNode* constructor = golden_case.Param("optimizer").Find("param_group_constructor");
  return constructor == nullptr ? "default" : constructor->text();
}

std::string LimitOf(const golden::Case& golden_case) {
  const std::string constructor = ConstructorOf(golden_case);
  const bool known = TestRun(ConfigNode::Map()).registries().parameter_groupers.Has(constructor);
  return known ? "" : absl::StrCat("no param_group_constructor ", constructor);
}

void CheckGroups(const golden::Case& golden_case) {
  const ConfigNode& optimizer = golden_case.Param("optimizer");
  ConfigNode config = ConfigNode::Map();
  config.SetPath("MODEL.TRUNK.NAME", golden_case.Param("trunk"));
  TestRun run(config);
  ASSERT_OK_AND_ASSIGN(const auto grouper,
                       run.registries().parameter_groupers.Make(ConstructorOf(golden_case), optimizer, run.context()));
  const std::vector<NamedParameter> model = GoldenModel(golden_case);

  ASSERT_OK_AND_ASSIGN(const std::vector<ParameterGroup> groups, grouper->Group(model));

  std::map<std::string, Settings> expected = ExpectedSettings(golden_case);
  for (const ParameterGroup& group : groups) {
    for (const std::string& name : group.names) {
      ASSERT_EQ(expected.count(name), 1u) << name << " is in two groups, or should be in none";
      const auto schedule = LearningRates().find(group.learning_rate_schedule);
      ASSERT_NE(schedule, LearningRates().end()) << group.learning_rate_schedule;
      const double rate = schedule->second * group.learning_rate_scale;
      EXPECT_DOUBLE_EQ(rate, expected[name].learning_rate) << name;
      EXPECT_EQ(group.weight_decay, expected[name].weight_decay) << name;
      expected.erase(name);
    }
  }
  for (const auto& [name, settings] : expected) ADD_FAILURE() << name << " is in no group";
}

TEST(GroupersGolden, RateAndDecayOfEveryParameterMatch) {
  golden::RunCategory("param_groups", {{"param_groups", &CheckGroups}}, {}, &LimitOf);
}

}  // namespace
}  // namespace ssl
