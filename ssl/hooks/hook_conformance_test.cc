// SPDX-License-Identifier: Apache-2.0
//
// What holds for every hook and sink of this package, whatever it does.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/help.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/register_core.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/hook_aliases.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/meters/register_meters.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;

constexpr char kData[] = R"(DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN: {DATA_SOURCES: [synthetic], DATA_LIMIT: 8, RANDOM_SYNTHETIC_LABELS: 2, DEFAULT_GRAY_IMG_SIZE: 8}
  TEST:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 8
    RANDOM_SYNTHETIC_LABELS: 2
    DEFAULT_GRAY_IMG_SIZE: 8
    TRANSFORMS: [{name: ToTensor}]
)";

class HookConformanceTest : public ::testing::Test {
 protected:
  HookConformanceTest() {
    EXPECT_OK(RegisterCore(&registries_));
    EXPECT_OK(RegisterMeters(&registries_));
    EXPECT_OK(RegisterData(&registries_));
    EXPECT_OK(RegisterHooks(&registries_));
    config_ = registries_.options.Defaults();
    // For hooks that read data of their own.
    std::vector<std::string> warnings;
    MergeInto(&config_, *ParseYaml(kData, "data", &warnings));
  }

  BuildContext Context() { return {config_, registries_, *communicator_, /*seed=*/0, directory_}; }

  // With defaults, and what has none.
  std::unique_ptr<Hook> Make(const std::string& name) {
    std::vector<std::string> warnings;
    const std::string params = name == "grad_clipper"        ? "{mode: average}"
                               : name == "early_stop"        ? "{METRIC: Testing/loss_mean}"
                               : name == "freeze_parameters" ? "{TEMP_FROZEN_PARAMS_ITER_MAP: [[weight, 3]]}"
                               : name == "perf_stats"        ? "{MONITOR_PERF_STATS: True}"
                                                             : "{}";
    absl::StatusOr<std::unique_ptr<Hook>> hook =
        registries_.hooks.Make(name, *ParseYaml(params, "params", &warnings), Context());
    EXPECT_OK(hook);
    return hook.ok() ? *std::move(hook) : nullptr;
  }

  std::vector<std::string> EnabledByDefault(const std::map<std::string, Component>& components) {
    std::vector<std::string> names;
    for (const auto& [name, component] : components) {
      if (component.make_options()->enabled()) names.push_back(name);
    }
    return names;
  }

  Registries registries_;
  ConfigNode config_;
  const std::string directory_ = MakeTempDir("hook_conformance");  // for hooks that write files
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(HookConformanceTest, EachRegisteredHookAndSink_IsDeclared) {
  for (const std::string& name : registries_.hooks.Names())
    EXPECT_THAT(registries_.hook_components, Contains(Key(name)));
  for (const std::string& name : registries_.metric_sinks.Names()) {
    EXPECT_THAT(registries_.sink_components, Contains(Key(name)));
  }
  for (const auto& [name, component] : registries_.hook_components) {
    EXPECT_EQ(component.name, name);
    EXPECT_FALSE(component.summary.empty()) << name;
  }
}

TEST_F(HookConformanceTest, OnlyThese_AreOnByDefault) {
  EXPECT_THAT(
      EnabledByDefault(registries_.hook_components),
      ElementsAre("broken_images", "check_nan", "checkpoint", "memory_summary", "phase_metrics", "train_logger"));
  EXPECT_THAT(EnabledByDefault(registries_.sink_components), ElementsAre("jsonl"));
}

TEST_F(HookConformanceTest, Names_AreThoseOfTheRegistry) {
  for (const std::string& name : registries_.hooks.Names()) {
    const std::unique_ptr<Hook> hook = Make(name);
    ASSERT_NE(hook, nullptr) << name;
    EXPECT_EQ(hook->name(), name);
    EXPECT_EQ(hook->instance_name(), name);
    EXPECT_EQ(hook->name(), Make(name)->name());
  }
}

// The catalog has refused what two structs declare; here, that what a hook shares is declared as it reads it.
TEST_F(HookConformanceTest, SharedKeys_AreDeclaredElsewhereJustSo) {
  std::map<std::string, HelpRow> declared;
  for (const std::string& path : registries_.options.Paths()) EXPECT_NE(path, kHookList);
  for (const CatalogEntry& entry : registries_.options.Entries()) {
    declared[entry.path] = {entry.path, entry.type, entry.default_value, "", entry.doc};
  }
  for (const auto* components : {&registries_.hook_components, &registries_.sink_components}) {
    for (const auto& [name, component] : *components) {
      const std::unique_ptr<ComponentOptions> options = component.make_options();
      for (const SharedOptions& shared : options->shared()) {
        for (const HelpRow& row : HelpRows(shared.section, *shared.options)) {
          ASSERT_THAT(declared, Contains(Key(row.key))) << name;
          EXPECT_EQ(declared[row.key].type, row.type) << name;
          EXPECT_EQ(declared[row.key].default_value, row.default_value) << name;
          EXPECT_EQ(declared[row.key].doc, row.doc) << name;
        }
      }
    }
  }
}

TEST_F(HookConformanceTest, KeysOfOneHook_DifferAndItsOwnAreDeclared) {
  for (const auto& [name, component] : registries_.hook_components) {
    const std::unique_ptr<ComponentOptions> options = component.make_options();
    ComponentParameters parameters(options.get());
    std::set<std::string> keys;
    for (const std::string& key : KeysOf(parameters)) EXPECT_TRUE(keys.insert(key).second) << name << " " << key;
    if (options->section() == kHookList) continue;
    for (const HelpRow& row : HelpRows(options->section(), *options)) {
      EXPECT_NE(registries_.options.Defaults().FindPath(row.key), nullptr) << row.key;
    }
  }
}

// A train step that records updates gives way to the standard one where a run has one of these: they look at a step
// while it is made. A new hook says what it does within an update (Hook::within_update), or is of them.
TEST_F(HookConformanceTest, OnlyThese_AreCalledInTheMiddleOfAnUpdate) {
  std::vector<std::string> names;
  for (const std::string& name : registries_.hooks.Names()) {
    if (Make(name)->within_update() == WithinUpdate::kUnknown) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("gradient_collector", "memory_checkpoint", "profiler"));
}

// What a recorded update repeats is a matter of the update's place in the run, not of its number.
TEST_F(HookConformanceTest, RecordingKeys_StayFromUpdateToUpdate) {
  for (const std::string& name : registries_.hooks.Names()) {
    const std::unique_ptr<Hook> hook = Make(name);
    FakeStep step;
    step.state.max_iterations = 1000;
    step.state.iteration = 500;
    const int64_t key = hook->RecordingKey(step.context);
    step.state.iteration = 501;
    EXPECT_EQ(hook->RecordingKey(step.context), key) << name;
  }
}

// What ssl_main --dry_run tells of it.
TEST_F(HookConformanceTest, EachHook_SaysWhatItDoesAndWhen) {
  for (const std::string& name : registries_.hooks.Names()) {
    const std::vector<PlannedAction> plan = Make(name)->Plan();
    EXPECT_FALSE(plan.empty()) << name;
    for (const PlannedAction& action : plan) EXPECT_FALSE(action.what.empty()) << name;
  }
}

TEST_F(HookConformanceTest, State_RoundTrips) {
  for (const std::string& name : registries_.hooks.Names()) {
    FakeStep step;
    at::Tensor value = at::full({2}, 3.0, at::kFloat).set_requires_grad(true);
    value.mutable_grad() = at::full({2}, 0.5, at::kFloat);
    step.model.parameters = {{"weight", value}};
    const std::unique_ptr<Hook> saved = Make(name);
    ASSERT_OK(saved->OnStart(step.context)) << name;
    ASSERT_OK(saved->OnBackward(step.context)) << name;
    ASSERT_OK_AND_ASSIGN(const uint32_t hash, HashState(*saved));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*saved));

    const std::unique_ptr<Hook> restored = Make(name);
    ASSERT_OK(RestoreState(*restored, state, name));
    ASSERT_OK(restored->OnStart(step.context)) << name;

    ASSERT_OK_AND_ASSIGN(const uint32_t hash_after, HashState(*restored));
    EXPECT_EQ(hash_after, hash) << name;
  }
}

TEST_F(HookConformanceTest, Aliases_LeadToHooksAndTheirKeys) {
  std::map<std::string, std::string> meanings;
  for (const HookAlias& alias : HookAliases()) {
    const bool is_sink = registries_.sink_components.count(alias.hook) > 0;
    const auto& components = is_sink ? registries_.sink_components : registries_.hook_components;
    ASSERT_THAT(components, Contains(Key(alias.hook))) << alias.name;
    EXPECT_EQ(meanings.emplace(alias.name, alias.hook).first->second, alias.hook) << alias.name;
    const std::unique_ptr<ComponentOptions> options = components.at(alias.hook).make_options();
    ComponentParameters parameters(options.get());
    for (const auto& [theirs, ours] : alias.keys) EXPECT_THAT(KeysOf(parameters), Contains(ours)) << alias.name;
    for (const auto& [ours, value] : alias.defaults) EXPECT_THAT(KeysOf(parameters), Contains(ours)) << alias.name;
  }
}

}  // namespace
}  // namespace ssl
