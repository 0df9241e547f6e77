// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/hook_entries.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class HookEntriesTest : public ::testing::Test {
 protected:
  HookEntriesTest() { EXPECT_OK(RegisterHooks(&registries_)); }

  // What is wrong with the list `hooks`: as it is resolved, or when it is made.
  std::string Error(const std::string& hooks) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> node = ParseYaml("hooks:\n" + hooks, "test.yaml", &warnings);
    EXPECT_OK(node);
    const absl::StatusOr<ConfigNode> resolved = ResolveConfig(*node, registries_);
    if (!resolved.ok()) return std::string(resolved.status().message());
    const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
    const BuildContext context{*resolved, registries_, *communicator};
    const absl::Status hooks_made = MakeConfiguredHooks(context).status();
    const absl::Status sinks_made = MakeConfiguredSinks(context).status();
    return std::string((hooks_made.ok() ? sinks_made : hooks_made).message());
  }

  Registries registries_;
};

TEST_F(HookEntriesTest, WrongEntries_AreNamedWithTheirPlace) {
  EXPECT_THAT(Error("  - {type: grad_cliper}"),
              AllOf(HasSubstr("test.yaml:2"), HasSubstr("no hook is named 'grad_cliper'; did you mean 'grad_clip")));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: average, tolerence: 2}}"),
              AllOf(HasSubstr("test.yaml:2"), HasSubstr("unknown key 'config.hooks.0.kwargs.tolerence'"),
                    HasSubstr("did you mean 'tolerance'")));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: averge}}"),
              AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs.mode is 'averge'"), HasSubstr("'average'")));
  EXPECT_THAT(Error("  - {type: grad_clipper}"), HasSubstr("mode is missing"));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: pre_defined}}"), HasSubstr("max_norm is missing or 0"));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: moving_average}}"), HasSubstr("momentum is missing"));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: moving_average, momentum: 1, bias_correction: True}}"),
              HasSubstr("momentum is 1"));
  EXPECT_THAT(Error("  - {type: grad_clipper, kwargs: {mode: moving_average, momentum: 1}}"),
              HasSubstr("momentum is 1, which keeps the limit at max_norm, 0"));
  EXPECT_THAT(Error("  - {kwargs: {}}"), AllOf(HasSubstr("test.yaml:2"), HasSubstr("config.hooks.0 has no type")));
  EXPECT_THAT(Error("  - {type: ema, arguments: 1}"), HasSubstr("unknown key 'config.hooks.0.arguments'"));
  EXPECT_THAT(Error("  - {type: ema, kwargs: 3}"), HasSubstr("kwargs is '3', expected a map"));
  EXPECT_THAT(Error("  - {type: ema, name: a/b}"), HasSubstr("config.hooks.0.name is 'a/b'"));
  EXPECT_EQ(Error(absl::StrCat("  - {type: grad_clipper, kwargs: {mode: pre_defined, max_norm: 1}, name: ",
                               std::string(100, 'x'), "}")),
            "");
  EXPECT_THAT(Error(absl::StrCat("  - {type: grad_clipper, kwargs: {mode: pre_defined, max_norm: 1}, name: ",
                                 std::string(101, 'x'), "}")),
              HasSubstr("test.yaml:2: config.hooks.0.name has 101 characters, expected at most 100"));
  EXPECT_THAT(Error("  - {type: ema}\n  - {type: EmaHook}"),
              AllOf(HasSubstr("test.yaml:3"), HasSubstr("a second hook 'ema' beside config.hooks.0")));
  EXPECT_THAT(Error("  {type: ema}"), HasSubstr("config.hooks is a map, expected a list"));
}

TEST_F(HookEntriesTest, HooksOfOthersThatAreNoneHere_SayWhatIsThereInstead) {
  EXPECT_THAT(Error("  - {type: yolox_noaug, kwargs: {no_aug_epoch: 2}}"),
              AllOf(HasSubstr("config.hooks.0.type is 'yolox_noaug', a hook of United Perception that is none here"),
                    HasSubstr("no transform or collator here mixes")));
}

TEST_F(HookEntriesTest, TwoEntriesOfAHookOfWhichARunHasOne_AreToBeMerged) {
  EXPECT_EQ(
      Error("  - {type: memory_empty}\n  - {type: memory_empty}"),
      "test.yaml:3: config.hooks.1 is a second memory_empty beside config.hooks.0 (test.yaml:2), of which a run has "
      "one, expected one entry with the kwargs of both");
  EXPECT_THAT(Error("  - {type: memory_empty, name: a}\n  - {type: memory_empty}"),
              AllOf(HasSubstr("expected one entry with the kwargs of both"), Not(HasSubstr("name"))));
  EXPECT_THAT(Error("  - {type: memory_empty}\n  - {type: memory_empty, name: a}"),
              HasSubstr("expected one entry with the kwargs of both"));
  EXPECT_THAT(Error("  - {type: train_val_logger}\n  - {type: PeriodicWriter}"),
              HasSubstr("config.hooks.1 is a second train_logger (elsewhere LogLossLrEtaHook, PeriodicWriter, "
                        "train_val_logger) beside config.hooks.0 (test.yaml:2)"));
  EXPECT_THAT(Error("  - {type: JSONWriter}\n  - {type: jsonl}"), HasSubstr("a second jsonl (elsewhere JSONWriter)"));
}

// A hook whose plan tells its options.
class TellingHook : public Hook {
 public:
  explicit TellingHook(std::string told) : told_(std::move(told)) {}
  absl::string_view name() const override { return "telling"; }
  HookStage stage() const override { return HookStage::kObserve; }
  std::vector<PlannedAction> Plan() const override { return {{told_, {}}}; }

 private:
  const std::string told_;
};

struct InnerOptions : public Options {
  int64_t a = 1;
  int64_t b = 1;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("A", &a, Doc("a"));
    visitor.Field("B", &b, Doc("b"));
  }
};

struct TellingOptions : public ComponentOptions {
  InnerOptions inner;
  absl::string_view section() const override { return "TELLING"; }
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override { visitor.Section("INNER", &inner, Doc("nested")); }
};

absl::StatusOr<std::unique_ptr<Hook>> MakeTelling(const TellingOptions& options, const ConfigNode& params,
                                                  const BuildContext& context) {
  return std::make_unique<TellingHook>(absl::StrCat(options.inner.a, " ", options.inner.b));
}

TEST_F(HookEntriesTest, KwargsOfANestedSection_LeaveItsOtherKeysAlone) {
  ASSERT_OK(RegisterHook(&registries_, {"telling", "tells its options"}, &MakeTelling));
  ASSERT_OK_AND_ASSIGN(const ConfigNode node, ParseYaml("TELLING: {INNER: {A: 2}}\n"
                                                        "hooks:\n"
                                                        "  - {type: telling, kwargs: {INNER: {B: 3}}}\n"
                                                        "  - {type: telling, name: own, kwargs: {INNER: {B: 4}}}\n",
                                                        "test.yaml", nullptr));
  ASSERT_OK_AND_ASSIGN(const ConfigNode resolved, ResolveConfig(node, registries_));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const auto hooks, MakeConfiguredHooks({resolved, registries_, *communicator}));
  std::vector<std::string> told;
  for (const std::unique_ptr<Hook>& hook : hooks) {
    if (hook->name() == "telling") told.push_back(hook->Plan()[0].what);
  }
  EXPECT_THAT(told, ElementsAre("2 3", "1 4"));
}

// A run that goes on compares what its configuration is resolved to.
TEST_F(HookEntriesTest, OneStringAndTheListOfIt_AreOneSetting) {
  const auto resolved = [this](const std::string& yaml) {
    const absl::StatusOr<ConfigNode> node = ParseYaml(yaml, "test.yaml", nullptr);
    const absl::StatusOr<ConfigNode> config = node.ok() ? ResolveConfig(*node, registries_) : node;
    EXPECT_OK(config);
    return config.ok() ? *config : ConfigNode();
  };
  for (const char* form :
       {"hooks: [{type: gradient_collector, kwargs: {hook_module: %s}}]",
        "hooks: [{type: feature_vis, name: mine, kwargs: {layer_name: %s}}]",
        "hooks: [{type: auto_save_best_multitask, kwargs: {tasks: %s}}]", "HOOKS: {BEST_CHECKPOINT: {METRICS: %s}}"}) {
    const std::string yaml = form;
    const size_t place = yaml.find("%s");
    std::string one = yaml;
    std::string list = yaml;
    EXPECT_EQ(resolved(one.replace(place, 2, "trunk")), resolved(list.replace(place, 2, "[trunk]"))) << form;
  }
}

TEST_F(HookEntriesTest, TwoHooksThatNameACheckpointAlike_AreRefused) {
  const std::string both = "  - {type: best_checkpoint, kwargs: {METRICS: [Training/loss_mean, Testing/loss_mean]}}\n";
  const std::string another = "  - {type: best_checkpoint, kwargs: {METRICS: [Training/loss_mean]}, name: ";
  EXPECT_THAT(Error(both + another + "Training_loss_mean}"),
              AllOf(HasSubstr("hooks 'best_checkpoint' and 'Training_loss_mean'"),
                    HasSubstr("would both keep checkpoints/best.Training_loss_mean.step")));
  EXPECT_EQ(Error(both + another + "mine}"), "");
}

TEST_F(HookEntriesTest, AnEntryThatTurnsItsHookOff_IsRefused) {
  for (const std::string entry :
       {"{type: check_nan, kwargs: {CHECK_NAN: false}}", "{type: grad_clip, kwargs: {USE_GRAD_CLIP: false}}",
        "{type: ema, kwargs: {SAVE_EMA_MODEL: false}}", "{type: eval, kwargs: {ONLINE_EVALUATION: false}}",
        "{type: profiler, kwargs: {RUNTIME_PROFILING: {USE_PROFILER: false}}}"}) {
    EXPECT_THAT(Error("  - " + entry), AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs."),
                                             HasSubstr("is false, but an entry of the list turns its hook on")))
        << entry;
  }
  EXPECT_EQ(Error("  - {type: ema, kwargs: {ENABLE_EMA_METERS: false}}"), "");
  EXPECT_EQ(Error("  - {type: ema, kwargs: {SAVE_EMA_MODEL: false, ENABLE_EMA_METERS: true}}"), "");
}

// A default has no place of its own.
TEST_F(HookEntriesTest, ADefaultThatIsWrong_HasThePlaceOfItsEntry) {
  EXPECT_THAT(Error("  - {type: early_stop}"), HasSubstr("test.yaml:2: config.HOOKS.EARLY_STOP.METRIC is ''"));
}

}  // namespace
}  // namespace ssl
