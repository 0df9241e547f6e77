// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/foreign_hook_entries.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/help.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/cadence.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What the hooks of an entry do and leave.
std::vector<std::string> Plans(const std::vector<std::unique_ptr<Hook>>& hooks, absl::string_view name) {
  std::vector<std::string> plans;
  for (const std::unique_ptr<Hook>& hook : hooks) {
    if (hook->name() != name) continue;
    for (const PlannedAction& action : hook->Plan()) {
      plans.push_back(absl::StrCat(action.what, " every ", action.when.every));
    }
  }
  return plans;
}

// One that a program has of its own, and registers under a name that another program has for a hook of ours.
class HostsEvalHook : public Hook {
 public:
  explicit HostsEvalHook(const ConfigNode& params) : params_(params) {}
  absl::string_view name() const override { return "EvalHook"; }
  HookStage stage() const override { return HookStage::kObserve; }
  std::vector<PlannedAction> Plan() const override {
    const auto count = [this](const char* key) { return params_.Find(key)->AsInt().value_or(0); };
    return {{absl::StrCat("evaluates ", count("shards"), " shards"),
             {Cadence::Unit::kUpdate, count("eval_period"), 1, 0, false}}};
  }

 private:
  const ConfigNode params_;
};

struct HostsSinkOptions : public ComponentOptions {
  absl::string_view section() const override { return kHookList; }
  bool enabled() const override { return false; }
};

absl::StatusOr<std::unique_ptr<MetricSink>> MakeHostsSink(const HostsSinkOptions&, const ConfigNode&,
                                                          const BuildContext&) {
  return absl::UnimplementedError("nothing is written here");
}

class ForeignHookEntriesTest : public ::testing::Test {
 protected:
  ForeignHookEntriesTest() { EXPECT_OK(RegisterHooks(&registries_)); }

  // What a program's configuration comes to, with `yaml` in the file test.yaml.
  absl::StatusOr<ConfigNode> Resolve(const std::string& yaml) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> config = ParseYaml(yaml, "test.yaml", &warnings);
    return config.ok() ? ResolveConfig(*config, registries_) : config;
  }

  // The list, on one line.
  std::string Hooks(const std::string& yaml) {
    const absl::StatusOr<ConfigNode> config = Resolve(yaml);
    return config.ok() ? FormatValue(*config->Find("hooks")) : std::string(config.status().message());
  }

  std::string Error(const std::string& yaml) { return std::string(Resolve(yaml).status().message()); }

  Registries registries_;
};

TEST_F(ForeignHookEntriesTest, Entries_HaveOurNamesAndTheOtherProgramsDefaults) {
  EXPECT_EQ(Hooks("hooks: [{type: PeriodicWriter}]"), "[{type: train_logger, kwargs: {LOG_FREQUENCY: 20}}]");
  EXPECT_EQ(Hooks("hooks: [{type: EvalHook, kwargs: {eval_period: 7}}]"),
            "[{type: eval, kwargs: {ITER_FREQUENCY: 7, EPOCH_FREQUENCY: -1}}]");
  EXPECT_EQ(Hooks("hooks: [{type: BestCheckpointer, kwargs: {val_metric: Training/loss_mean}}]"),
            "[{type: best_checkpoint, kwargs: {METRICS: [Training/loss_mean]}}]")
      << "less of a loss is better, whatever that program's default is";
  EXPECT_EQ(Hooks("hooks: [{type: BestCheckpointer, kwargs: {val_metric: [a, b], mode: min}}]"),
            "[{type: best_checkpoint, kwargs: {METRICS: [a, b], MODE: min}}]");
  EXPECT_EQ(Hooks("hooks: [{type: JSONWriter}, {type: train_logger}, {type: of_the_host, kwargs: {period: 3}}]"),
            "[{type: jsonl}, {type: train_logger}, {type: of_the_host, kwargs: {period: 3}}]");
}

TEST_F(ForeignHookEntriesTest, WhatTheUserHasSet_StaysInTheSection) {
  EXPECT_EQ(Hooks("LOG_FREQUENCY: 10\nhooks: [{type: PeriodicWriter}]"), "[{type: train_logger}]") << "our default";
  EXPECT_EQ(Hooks("HOOKS: {TRAIN_LOGGER: {SUMMARY_WRITER: ''}}\nhooks: [{type: train_val_logger}]"),
            "[{type: train_logger, kwargs: {LOG_FREQUENCY: 1}}]");
  ASSERT_OK_AND_ASSIGN(ConfigNode of_code, ParseYaml("hooks: [{type: PeriodicWriter}]", "", nullptr));
  of_code.Set("LOG_FREQUENCY", ConfigNode::FromInt(3));
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(of_code, registries_));
  EXPECT_EQ(FormatValue(*config.Find("hooks")), "[{type: train_logger}]");
}

TEST_F(ForeignHookEntriesTest, ANamedInstance_HasNoSection) {
  EXPECT_EQ(Hooks("CHECKPOINT: {CHECKPOINT_FREQUENCY: 2}\nhooks: [{type: PeriodicCheckpointer, name: second}]"),
            "[{type: checkpoint, name: second, kwargs: {CHECKPOINT_FREQUENCY: -1}}]");
  EXPECT_EQ(Hooks("CHECKPOINT: {CHECKPOINT_FREQUENCY: 2}\nhooks: [{type: PeriodicCheckpointer, name: checkpoint}]"),
            "[{type: checkpoint, name: checkpoint}]");
}

// Registers it after the package, as programs do.
TEST_F(ForeignHookEntriesTest, AHostsHookOfTheName_StaysTheHosts) {
  ASSERT_OK(registries_.hooks.Register("EvalHook", [](const ConfigNode& params, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Hook>>(std::make_unique<HostsEvalHook>(params));
  }));
  ASSERT_OK_AND_ASSIGN(const ConfigNode config,
                       Resolve("hooks: [{type: EvalHook, kwargs: {eval_period: 7, shards: 2}}, {type: JSONWriter}]"));
  EXPECT_EQ(FormatValue(*config.Find("hooks")),
            "[{type: EvalHook, kwargs: {eval_period: 7, shards: 2}}, {type: jsonl}]");
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const std::vector<std::unique_ptr<Hook>> hooks,
                       MakeConfiguredHooks({config, registries_, *communicator}));
  EXPECT_THAT(Plans(hooks, "EvalHook"), ElementsAre("evaluates 2 shards every 7"));
}

TEST_F(ForeignHookEntriesTest, AHostsSinkOfTheName_StaysTheHosts) {
  ASSERT_OK(RegisterSink(&registries_, {"JSONWriter", "writes what the host wants"}, &MakeHostsSink));
  EXPECT_EQ(Hooks("hooks: [{type: JSONWriter}, {type: TensorboardXWriter}]"),
            "[{type: JSONWriter}, {type: tensorboard}]");
}

TEST_F(ForeignHookEntriesTest, ValuesKeepTheirPlaces) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, Resolve("hooks:\n"
                                                        "  - type: EvalHook\n"
                                                        "    kwargs:\n"
                                                        "      eval_period: 7\n"));
  EXPECT_EQ(config.FindPath("hooks.0.type")->location().ToString(), "test.yaml:2");
  EXPECT_EQ(config.FindPath("hooks.0.kwargs.ITER_FREQUENCY")->location().ToString(), "test.yaml:4");
  EXPECT_EQ(config.FindPath("hooks.0.kwargs.EPOCH_FREQUENCY")->location().file, "test.yaml");
}

// A run's own train_config.yaml sets every key.
TEST_F(ForeignHookEntriesTest, AResolvedConfigurationThatIsReadAgain_MeansTheSame) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode first,
                       Resolve("hooks: [{type: PeriodicWriter}, {type: PeriodicCheckpointer}, {type: IterationTimer},\n"
                               "        {type: BestCheckpointer, kwargs: {val_metric: Training/loss_mean}}]"));
  ASSERT_OK_AND_ASSIGN(const ConfigNode again, Resolve(WriteYaml(first)));
  EXPECT_EQ(FormatValue(*again.Find("hooks")), FormatValue(*first.Find("hooks")));
  EXPECT_TRUE(again == first);
  EXPECT_THAT(FormatValue(*again.Find("hooks")), AllOf(HasSubstr("CHECKPOINT_FREQUENCY: -1"),
                                                       HasSubstr("LOG_FREQUENCY: 20"), HasSubstr("PERF_STATS: true")));
}

TEST_F(ForeignHookEntriesTest, UnknownKeys_SuggestTheirNamesAndOurs) {
  EXPECT_EQ(Error("hooks:\n  - {type: PeriodicCheckpointer, kwargs: {perod: 5}}"),
            "test.yaml:2: unknown key 'config.hooks.0.kwargs.perod'; did you mean 'period'?");
  EXPECT_THAT(Error("hooks: [{type: PeriodicCheckpointer, kwargs: {ROLING_START: 5}}]"),
              HasSubstr("did you mean 'ROLLING_START'?"));
  EXPECT_THAT(Error("hooks: [{type: PeriodicWriter, kwargs: {xyzxyz: 5}}]"),
              HasSubstr("unknown key 'config.hooks.0.kwargs.xyzxyz'; expected one of period, SKIP_FIRST_K"));
  EXPECT_THAT(Error("hooks: [{type: JSONWriter, kwargs: {period: 5}}]"), HasSubstr("; JSONWriter has no options"));
  EXPECT_THAT(Error("hooks: [{type: TorchProfiler, kwargs: {RUNTIME_PROFILING: {RECORD_SHAPE: True}}}]"),
              HasSubstr("did you mean 'RECORD_SHAPES'"));
}

TEST_F(ForeignHookEntriesTest, TheirKeysThatAreNoneHere_SayWhatIs) {
  EXPECT_EQ(
      Error("hooks:\n  - {type: auto_save_metric, kwargs: {metric_json: metric.json}}"),
      "test.yaml:2: config.hooks.0.kwargs.metric_json is a key of United Perception's auto_save_metric that is none "
      "here. The file is metrics.json in the run's directory, a line for each phase.");
  EXPECT_THAT(Error("hooks: [{type: auto_save_metric, kwargs: {detail_metric: top1}}]"), HasSubstr("METERS.names"));
  EXPECT_THAT(Error("hooks: [{type: feature_vis, kwargs: {gt_dir: gt}}]"), HasSubstr("none here"));
  EXPECT_THAT(Error("hooks: [{type: grad_cam, kwargs: {class_names: a.json}}]"), HasSubstr("none here"));
  EXPECT_THAT(Error("hooks: [{type: gradient_collector, kwargs: {grad_type: input, collect_func_module: a}}]"),
              AllOf(HasSubstr("kwargs.collect_func_module is"), Not(HasSubstr("grad_type"))));
  EXPECT_THAT(Error("hooks: [{type: PeriodicCheckpointer, kwargs: {period: 5, max_to_keep: 3}}]"),
              HasSubstr("config.CHECKPOINT.KEEP_LAST"));
  EXPECT_THAT(Error("hooks: [{type: IterationTimer, kwargs: {warmup_iter: 3}}]"), HasSubstr("SKIP_FIRST_K"));
  EXPECT_THAT(Error("hooks: [{type: JSONWriter, kwargs: {json_file: a}}]"), HasSubstr("metrics.jsonl"));
}

TEST_F(ForeignHookEntriesTest, UnitedPerceptionsMultitask_KeepsTheBestOfEachMetric) {
  EXPECT_EQ(Hooks("hooks: [{type: auto_save_best_multitask, kwargs: {tasks: [Testing/a, Testing/b]}}]"),
            "[{type: best_checkpoint, kwargs: {METRICS: [Testing/a, Testing/b]}}]");
  EXPECT_EQ(Hooks("hooks: [{type: auto_save_best_multitask, kwargs: {tasks: Testing/a}}]"),
            "[{type: best_checkpoint, kwargs: {METRICS: [Testing/a]}}]");
  EXPECT_EQ(Hooks("hooks: [{type: auto_save_best_multitask}]"), "[{type: best_checkpoint}]");
}

// As that program's page has it.
TEST_F(ForeignHookEntriesTest, UnitedPerceptionsVisualize_DrawsCrops) {
  const CapturedLog log;
  EXPECT_EQ(Hooks("hooks:\n"
                  "  - type: visualize\n"
                  "    kwargs:\n"
                  "      vis_gt: {type: plt, kwargs: {vis_dir: truth, thresh: 0.3}}\n"
                  "      vis_dt: {type: plt, kwargs: {vis_dir: vis_dt, thresh: 0.3}}"),
            "[{type: crop_images, kwargs: {save_dir: truth}}]");
  EXPECT_THAT(log.warnings,
              ElementsAre(HasSubstr("test.yaml:4: config.hooks.0.kwargs.vis_gt.type has no effect here"),
                          HasSubstr("config.hooks.0.kwargs.vis_gt.kwargs.thresh has no effect here. Images have no"),
                          HasSubstr("test.yaml:5: config.hooks.0.kwargs.vis_dt has no effect here. Nothing is")));
  EXPECT_EQ(Hooks("hooks: [{type: visualize}]"), "[{type: crop_images, kwargs: {save_dir: vis_gt}}]");
  for (const std::string empty : {"vis_gt: null", "vis_gt: {kwargs: null}", "vis_gt: {}"}) {
    EXPECT_EQ(Hooks("hooks: [{type: visualize, kwargs: {" + empty + "}}]"),
              "[{type: crop_images, kwargs: {save_dir: vis_gt}}]")
        << empty;
  }
  EXPECT_THAT(Error("hooks: [{type: visualize, kwargs: {vis_gt: {kwargs: {vis_di: a}}}}]"),
              HasSubstr("unknown key 'config.hooks.0.kwargs.vis_gt.kwargs.vis_di'; did you mean "
                        "'vis_gt.kwargs.vis_dir'?"));
  EXPECT_THAT(Error("hooks: [{type: visualize, kwargs: {vis_gt: {kwargs: {vis_dir: [a]}}}}]"),
              HasSubstr("config.hooks.0.kwargs.vis_gt.kwargs.vis_dir is a list"));
}

TEST_F(ForeignHookEntriesTest, WrongValues_AreNamedAsTheUserHasWrittenThem) {
  EXPECT_EQ(Error("hooks:\n  - {type: PeriodicWriter, kwargs: {period: 0}}"),
            "test.yaml:2: config.hooks.0.kwargs.period is '0', expected an integer of at least 1");
  EXPECT_THAT(Error("hooks: [{type: PeriodicWriter, kwargs: {LOG_FREQUENCY: 0}}]"),
              AllOf(HasSubstr("config.hooks.0.kwargs.LOG_FREQUENCY is '0'"), Not(HasSubstr("period"))));
  EXPECT_THAT(Error("hooks: [{type: BestCheckpointer, kwargs: {val_metric: [a], mode: most}}]"),
              HasSubstr("config.hooks.0.kwargs.mode is 'most', expected one of 'auto', 'min', 'max'"));
  EXPECT_THAT(Error("hooks: [{type: PeriodicWriter, kwargs: {period: 5, LOG_FREQUENCY: 6}}]"),
              HasSubstr("config.hooks.0.kwargs.LOG_FREQUENCY stands there twice"));
}

TEST_F(ForeignHookEntriesTest, NestedKeys_AreCheckedByTheirNames) {
  EXPECT_EQ(Error("hooks:\n- {type: memory_checkpoint, kwargs: {dc_cfg: {max_memory: 0}}}"),
            "test.yaml:2: config.hooks.0.kwargs.dc_cfg.max_memory is '0', expected a number above 0 (GiB)");
  EXPECT_EQ(Error("hooks:\n- {type: memory_checkpoint, kwargs: {dc_cfg: {max_memry: 1}}}"),
            "test.yaml:2: unknown key 'config.hooks.0.kwargs.dc_cfg.max_memry'; did you mean 'max_memory'?");
  EXPECT_THAT(
      Error("hooks: [{type: memory_checkpoint, kwargs: {checkpoint_patterns: {backbone: {level: {nun: 1}}}}}]"),
      HasSubstr("unknown key 'config.hooks.0.kwargs.checkpoint_patterns.backbone.level.nun'; did you mean 'num'?"));
}

TEST_F(ForeignHookEntriesTest, AllProblemsOfTheList_ComeAtOnce) {
  EXPECT_THAT(Error("hooks:\n"
                    "  - {type: PeriodicWriter, kwargs: {period: 0, perido: 1}}\n"
                    "  - {type: EvalHook, kwargs: {eval_period: often}}"),
              AllOf(HasSubstr("kwargs.period is '0'"), HasSubstr("kwargs.perido'"),
                    HasSubstr("test.yaml:3: config.hooks.1.kwargs.eval_period is 'often'")));
}

TEST_F(ForeignHookEntriesTest, LiBaisAndDetectron2sEntries_MeanWhatTheyMeanThere) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode config,
                       Resolve("hooks: [{type: BestCheckpointer, kwargs: {val_metric: Training/loss_mean}},\n"
                               "        {type: PeriodicCheckpointer, kwargs: {period: 7}}]"));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const std::vector<std::unique_ptr<Hook>> hooks,
                       MakeConfiguredHooks({config, registries_, *communicator}));
  EXPECT_THAT(Plans(hooks, "best_checkpoint"), ElementsAre("looks for a better Training/loss_mean every 1"));
  EXPECT_THAT(Plans(hooks, "checkpoint"), ElementsAre("saves the run every 7")) << "and none after each epoch";
}

}  // namespace
}  // namespace ssl
