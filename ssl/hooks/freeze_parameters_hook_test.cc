// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/freeze_parameters_hook.h"

#include <ATen/ops/ones.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPath[] = "config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP";

NamedParameter WithGradient(const std::string& name) {
  at::Tensor value = at::ones({2}).set_requires_grad(true);
  value.mutable_grad() = at::ones({2});
  return {name, value, false};
}

void AddModel(FakeStep& step) {
  step.model.parameters = {WithGradient("trunk.conv1.weight"), WithGradient("heads.0.prototypes0.weight"),
                           WithGradient("heads.0.prototypes1.weight")};
}

bool HasGradient(const FakeStep& step, size_t i) { return step.model.parameters[i].value.grad().defined(); }

ConfigNode Yaml(const std::string& text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "test.yaml", &warnings);
  EXPECT_OK(node);
  return node.value_or(ConfigNode());
}

TEST(FreezeParametersHook, Gradient_IsDroppedBeforeTheGivenIterationOnly) {
  for (const int64_t iteration : {0, 4, 5, 6}) {
    FakeStep step;
    AddModel(step);
    FreezeParametersHook hook({{"heads.0.prototypes0.weight", 5, ""}});
    ASSERT_OK(hook.OnStart(step.context));
    step.state.iteration = iteration;

    ASSERT_OK(hook.OnBackward(step.context));

    EXPECT_EQ(HasGradient(step, 1), iteration >= 5) << iteration;
    EXPECT_TRUE(HasGradient(step, 0));
    EXPECT_TRUE(HasGradient(step, 2));
  }
}

TEST(FreezeParametersHook, SeveralEntries_HaveTheirOwnIterations) {
  FakeStep step;
  AddModel(step);
  FreezeParametersHook hook({{"heads.0.prototypes1.weight", 9, ""}, {"trunk.conv1.weight", 2, ""}});
  ASSERT_OK(hook.OnStart(step.context));
  step.state.iteration = 2;

  ASSERT_OK(hook.OnBackward(step.context));

  EXPECT_TRUE(HasGradient(step, 0));
  EXPECT_TRUE(HasGradient(step, 1));
  EXPECT_FALSE(HasGradient(step, 2));
}

TEST(FreezeParametersHook, VisslSpellings_AreUnderstood) {
  for (const char* name : {"module.trunk.conv1.weight", "module.trunk._feature_blocks.conv1.weight",
                           "_fsdp_wrapped_module.trunk.conv1.weight", "trunk._fpw_module.conv1.weight"}) {
    FakeStep step;
    AddModel(step);
    FreezeParametersHook hook({{name, 1, ""}});

    ASSERT_OK(hook.OnStart(step.context)) << name;
    ASSERT_OK(hook.OnBackward(step.context));

    EXPECT_FALSE(HasGradient(step, 0)) << name;
  }
}

TEST(FreezeParametersHook, NamesOfNoParameter_AreAllReportedWithTheNearestName) {
  FakeStep step;
  AddModel(step);
  FreezeParametersHook hook({{"module.heads.0.prototypes.weight", 1, "a.yaml:7: KEY"},
                             {"trunk.conv1.weight", 1, "a.yaml:8: KEY"},
                             {"quite.another.name", 1, "a.yaml:9: KEY"}});

  EXPECT_THAT(hook.OnStart(step.context),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("a.yaml:7: KEY names "
                                       "'module.heads.0.prototypes.weight', which is no parameter of the model; did "
                                       "you mean 'heads.0.prototypes0.weight'?"),
                             HasSubstr("\na.yaml:9"), Not(HasSubstr("a.yaml:8")))));
}

TEST(ParseFrozenParameters, ListOfPairs_IsRead) {
  ASSERT_OK_AND_ASSIGN(const auto frozen, ParseFrozenParameters(Yaml("[[a.weight, 313], ['b', 0]]"), kPath));

  ASSERT_EQ(frozen.size(), 2u);
  EXPECT_EQ(frozen[0].name, "a.weight");
  EXPECT_EQ(frozen[0].iterations, 313);
  EXPECT_EQ(frozen[0].place, "test.yaml:1: config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP");
}

TEST(ParseFrozenParameters, NullAndEmpty_FreezeNothing) {
  EXPECT_TRUE(ParseFrozenParameters(ConfigNode(), kPath)->empty());
  EXPECT_TRUE(ParseFrozenParameters(Yaml("[]"), kPath)->empty());
}

TEST(ParseFrozenParameters, EveryWrongEntry_IsReportedWithItsPlace) {
  EXPECT_THAT(ParseFrozenParameters(Yaml("- [a, 1]\n- a\n- [a, many]\n- [a, -1]\n- [a, 1, 2]"), kPath),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(Not(HasSubstr("test.yaml:1")), HasSubstr("test.yaml:2: config.MODEL.TEMP_FROZEN"),
                             HasSubstr("test.yaml:3"), HasSubstr("test.yaml:4"), HasSubstr("test.yaml:5"),
                             HasSubstr("expected [name of a parameter, number of iterations"))));
}

TEST(ParseFrozenParameters, NoList_IsAnError) {
  EXPECT_THAT(ParseFrozenParameters(Yaml("a.weight"), kPath),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP is 'a.weight', expected a list")));
}

}  // namespace
}  // namespace ssl
