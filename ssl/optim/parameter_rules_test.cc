// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/parameter_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

struct Settings {
  double rate = 0.0;
  double decay = 0.0;
};

// detectron2's case of groups that are reduced: six parameters, of which three have equal settings and do not stand
// together. Its result has them in the order of its groups, ours in that of the model.
TEST(ParameterRulesTest, EqualSettings_AreOneGroupAndTheOrderIsKept) {
  const std::map<std::string, Settings> settings = {{"p1", {1, 4}}, {"p2", {2, 3}}, {"p3", {2, 3}},
                                                    {"p4", {1, 3}}, {"p5", {4, 2}}, {"p6", {2, 3}}};
  std::vector<NamedParameter> parameters;
  for (const auto& [name, setting] : settings) parameters.push_back({name, at::zeros({1}).set_requires_grad(true)});

  const std::vector<ParameterGroup> groups = FormGroups(parameters, [&settings](const NamedParameter& parameter) {
    const Settings& setting = settings.at(parameter.name);
    ParameterGroup group;
    group.name = absl::StrCat("rate ", setting.rate, " decay ", setting.decay);
    group.weight_decay = setting.decay;
    return group;
  });

  std::vector<std::vector<std::string>> names;
  std::vector<double> decays;
  for (const ParameterGroup& group : groups) {
    names.push_back(group.names);
    decays.push_back(group.weight_decay);
  }
  EXPECT_THAT(names,
              ElementsAre(ElementsAre("p1"), ElementsAre("p2", "p3", "p6"), ElementsAre("p4"), ElementsAre("p5")));
  EXPECT_THAT(decays, ElementsAre(4, 3, 3, 2));
}

}  // namespace
}  // namespace ssl
