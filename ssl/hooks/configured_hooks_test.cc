// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/configured_hooks.h"

#include <cerrno>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ConfiguredHooksTest : public ::testing::Test {
 protected:
  ConfiguredHooksTest() { EXPECT_OK(RegisterHooks(&registries_)); }

  // Of the resolved configuration.
  BuildContext Context(const std::string& yaml, const std::string& run_directory = "") {
    std::vector<std::string> warnings;
    absl::StatusOr<ConfigNode> node = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(node);
    if (node.ok()) node = ResolveConfig(*node, registries_);
    EXPECT_OK(node);
    if (node.ok()) config_ = *std::move(node);
    return {config_, registries_, *communicator_, /*seed=*/0, run_directory};
  }

  std::vector<std::string> NamesFor(const std::string& yaml) {
    const auto hooks = MakeConfiguredHooks(Context(yaml));
    EXPECT_OK(hooks);
    std::vector<std::string> names;
    if (!hooks.ok()) return names;
    for (const std::unique_ptr<Hook>& hook : *hooks) names.emplace_back(hook->name());
    return names;
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(ConfiguredHooksTest, Registration_SaysWhoMakesThem) {
  EXPECT_TRUE(registries_.configured_hooks != nullptr);
  EXPECT_TRUE(registries_.configured_sinks != nullptr);
}

TEST_F(ConfiguredHooksTest, RegisteringTwice_IsTheSameAsOnce) { EXPECT_OK(RegisterHooks(&registries_)); }

TEST_F(ConfiguredHooksTest, Defaults_CheckSaveAndLog) {
  EXPECT_THAT(NamesFor("{}"), ElementsAre("check_nan", "broken_images", "train_logger", "memory_summary",
                                          "phase_metrics", "checkpoint"));
}

TEST_F(ConfiguredHooksTest, CheckNan_CanBeSwitchedOff) {
  EXPECT_THAT(NamesFor("HOOKS: {CHECK_NAN: False}"),
              ElementsAre("broken_images", "train_logger", "memory_summary", "phase_metrics", "checkpoint"));
}

TEST_F(ConfiguredHooksTest, FrozenParameters_AddTheirHook) {
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [[a.weight, 3]]}"),
              ElementsAre("check_nan", "freeze_parameters", "broken_images", "train_logger", "memory_summary",
                          "phase_metrics", "checkpoint"));
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: []}"), SizeIs(6));
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: null}"), SizeIs(6));
}

TEST_F(ConfiguredHooksTest, GradClip_PrecedesWhatDropsGradients) {
  EXPECT_THAT(
      NamesFor("MODEL: {GRAD_CLIP: {USE_GRAD_CLIP: True, NORM_TYPE: inf}, TEMP_FROZEN_PARAMS_ITER_MAP: [[a, 3]]}"),
      ElementsAre("check_nan", "grad_clip", "freeze_parameters", "broken_images", "train_logger", "memory_summary",
                  "phase_metrics", "checkpoint"));
  EXPECT_THAT(MakeConfiguredHooks(Context("MODEL: {GRAD_CLIP: {USE_GRAD_CLIP: True, NORM_TYPE: two}}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: config.MODEL.GRAD_CLIP.NORM_TYPE is 'two'")));
}

TEST_F(ConfiguredHooksTest, AveragesOrTheirMeters_AddTheEmaHook) {
  for (const char* key : {"SAVE_EMA_MODEL", "ENABLE_EMA_METERS"}) {
    EXPECT_THAT(NamesFor(std::string("HOOKS: {EMA_MODEL: {") + key + ": True}}"),
                ElementsAre("check_nan", "ema", "broken_images", "train_logger", "memory_summary", "phase_metrics",
                            "checkpoint"));
  }
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS: {EMA_MODEL: {ENABLE_EMA_METERS: True}}\nMETERS: {names: [acuracy]}")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no meter is named 'acuracy'")));
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True, DECAY: 2}}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.HOOKS.EMA_MODEL.DECAY")));
}

TEST_F(ConfiguredHooksTest, PerfStats_RunForTheTableOrForTheRollingTime) {
  for (const char* key : {"MONITOR_PERF_STATS: True", "ROLLING_BTIME_FREQ: 20"}) {
    EXPECT_THAT(NamesFor(std::string("HOOKS: {PERF_STATS: {") + key + "}}"),
                ElementsAre("perf_stats", "check_nan", "broken_images", "train_logger", "memory_summary",
                            "phase_metrics", "checkpoint"));
  }
  EXPECT_THAT(NamesFor("HOOKS: {PERF_STATS: {PERF_STAT_FREQUENCY: 40}}"), SizeIs(6));
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS: {PERF_STATS: {ROLLING_BTIME_FREQ: -2, MONITOR_PERF_STATS: True}}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.HOOKS.PERF_STATS.ROLLING_BTIME_FREQ")));
}

TEST_F(ConfiguredHooksTest, ModelComplexity_NeedsTheShapeOfAPicture) {
  EXPECT_THAT(NamesFor("HOOKS: {MODEL_COMPLEXITY: {COMPUTE_COMPLEXITY: True}}"),
              ElementsAre("check_nan", "broken_images", "model_complexity", "train_logger", "memory_summary",
                          "phase_metrics", "checkpoint"));
  EXPECT_THAT(
      MakeConfiguredHooks(Context("HOOKS:\n  MODEL_COMPLEXITY:\n    COMPUTE_COMPLEXITY: True\n    INPUT_SHAPE: [224]")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("test.yaml:4"), HasSubstr("INPUT_SHAPE has 1 numbers"),
                     HasSubstr("expected [channels, height, width]"))));
}

TEST_F(ConfiguredHooksTest, OutputMask_PrecedesWhatMeasures) {
  EXPECT_THAT(NamesFor("METERS: {model_output_mask: True}\nHOOKS: {CHECK_NAN: False}"),
              ElementsAre("model_output_mask", "broken_images", "train_logger", "memory_summary", "phase_metrics",
                          "checkpoint"));
}

TEST_F(ConfiguredHooksTest, MemorySummary_RunsForTheLineOrForErrors) {
  EXPECT_THAT(NamesFor("HOOKS: {MEMORY_SUMMARY: {PRINT_MEMORY_SUMMARY: False}}"), SizeIs(5));
  EXPECT_THAT(NamesFor("HOOKS: {MEMORY_SUMMARY: {PRINT_MEMORY_SUMMARY: False, DUMP_MEMORY_ON_EXCEPTION: True}}"),
              SizeIs(6));
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS: {MEMORY_SUMMARY: {LOG_ITERATION_NUM: -1}}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.HOOKS.MEMORY_SUMMARY.LOG_ITERATION_NUM")));
}

TEST_F(ConfiguredHooksTest, KeysOfOtherComponents_AreNotTakenForTheHooks) {
  EXPECT_THAT(NamesFor("LOG_FREQUENCY: 5\nSEED_VALUE: 1\nCHECKPOINT: {DIR: x, CHECKPOINT_FREQUENCY: 2}"), SizeIs(6));
}

// VISSL's keys that nobody reads stand in the same nested sections as ours.
TEST_F(ConfiguredHooksTest, KeysOfOthersInANestedSection_AreNotTakenForTheHooks) {
  const std::string profiling = "PROFILING: {RUNTIME_PROFILING: {PROFILE_CPU: True, USE_PROFILER: True}}\n";
  for (const std::string& yaml : {profiling, profiling + "hooks: [{type: profiler}]\n"}) {
    EXPECT_OK(MakeConfiguredHooks(Context(yaml, MakeTempDir("profiled")))) << yaml;
  }
}

TEST_F(ConfiguredHooksTest, WrongValues_AreNamedWithTheirPlace) {
  EXPECT_THAT(
      MakeConfiguredHooks(Context("A: 1\nLOG_FREQUENCY: 0")),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:2"), HasSubstr("LOG_FREQUENCY"))));
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS:\n  CHECK_NAN: perhaps")),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:2"), HasSubstr("perhaps"))));
  EXPECT_THAT(MakeConfiguredHooks(Context("CHECKPOINT: {CHECKPOINT_ITER_FREQUENCY: often}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("CHECKPOINT_ITER_FREQUENCY")));
  EXPECT_THAT(MakeConfiguredHooks(Context("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [a]}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected [name of a parameter")));
}

TEST_F(ConfiguredHooksTest, UnknownOptionOfAHook_IsAnErrorWithTheNearestName) {
  const BuildContext context = Context("{}");
  ConfigNode params = ConfigNode::Map();
  params.Set("LOG_FREQENCY", ConfigNode::FromInt(3));

  EXPECT_THAT(registries_.hooks.Make("train_logger", params, context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LOG_FREQUENCY")));
}

TEST_F(ConfiguredHooksTest, AnEntryOfTheList_TurnsItsHookOnWithItsKwargs) {
  EXPECT_THAT(NamesFor("hooks: [{type: grad_clipper, kwargs: {mode: moving_average, momentum: 0.9, tolerance: 5}}]"),
              ElementsAre("check_nan", "grad_clipper", "broken_images", "train_logger", "memory_summary",
                          "phase_metrics", "checkpoint"));
  EXPECT_THAT(NamesFor("hooks: null"), SizeIs(6));
  EXPECT_THAT(NamesFor("hooks: [{type: GradClipHook}]\nMODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [[a, 3]]}"),
              ElementsAre("check_nan", "grad_clip", "freeze_parameters", "broken_images", "train_logger",
                          "memory_summary", "phase_metrics", "checkpoint"))
      << "another program's name, without the key that turns it on";
}

TEST_F(ConfiguredHooksTest, AnEntryWithoutAName_StandsForTheHookOfItsSection) {
  const std::string entry = "hooks: [{type: train_val_logger, kwargs: {freq: 3}}]";
  EXPECT_THAT(NamesFor(entry), SizeIs(6)) << "one train_logger";
  EXPECT_THAT(NamesFor("HOOKS: {PERF_STATS: {ROLLING_BTIME_FREQ: 4}}\nhooks: [{type: perf_stats}]"), SizeIs(7));
}

TEST_F(ConfiguredHooksTest, NamedAverages_AreMeasuredWithTheRunsMeters) {
  EXPECT_THAT(MakeConfiguredHooks(Context("METERS: {names: [of_the_run]}\n"
                                          "hooks: [{type: ema, name: slow, kwargs: {ENABLE_EMA_METERS: true}}]")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'of_the_run'")))
      << "there is no such meter to make";
}

TEST_F(ConfiguredHooksTest, NamedEntries_AreFurtherHooksOfOneType) {
  const auto hooks =
      MakeConfiguredHooks(Context("hooks: [{type: grad_clipper, name: b, kwargs: {mode: average}},\n"
                                  "        {type: grad_clipper, name: a, kwargs: {mode: pre_defined, max_norm: 2}}]"));
  ASSERT_OK(hooks);
  std::vector<std::string> instances;
  for (const std::unique_ptr<Hook>& hook : *hooks) {
    if (hook->name() == "grad_clipper") instances.emplace_back(hook->instance_name());
  }
  EXPECT_THAT(instances, ElementsAre("b", "a")) << "the order of the list";
}

// Two clippers with limits of their own, of which one follows the run: reports by iteration.
std::vector<MetricReport> TrainWithNamedClippers(const std::string& directory, const Registries& registries,
                                                 int64_t steps) {
  std::vector<std::string> warnings;
  ConfigNode config = FakeConfig(directory);
  MergeInto(&config, *ParseYaml("LOG_FREQUENCY: 1\nhooks: [{type: grad_clipper, name: b, kwargs: {mode: average}},\n"
                                "        {type: grad_clipper, name: a, kwargs: {mode: pre_defined, max_norm: 0.01}}]",
                                "test.yaml", &warnings));
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config, registries, {});
  EXPECT_OK(session.status());
  std::vector<MetricReport> reports;
  if (!session.ok()) return reports;
  (*session)->metrics().AddSink(std::make_unique<MemorySink>(&reports));
  for (int64_t step = 0; step < steps; ++step) EXPECT_OK((*session)->Step());
  EXPECT_OK((*session)->Finish());
  return reports;
}

TEST_F(ConfiguredHooksTest, NamedEntries_RunInASessionAndGoOnWithTheirState) {
  ASSERT_OK(RegisterFakes(&registries_));
  const std::vector<MetricReport> whole = TrainWithNamedClippers(MakeTempDir("whole"), registries_, 9);
  const std::string directory = MakeTempDir("parts");
  std::vector<MetricReport> parts = TrainWithNamedClippers(directory, registries_, 5);
  for (MetricReport& report : TrainWithNamedClippers(directory, registries_, 4)) parts.push_back(std::move(report));
  ASSERT_EQ(whole.size(), 9u) << "less than an epoch, which has a report of its own";
  ASSERT_EQ(parts.size(), whole.size());
  std::vector<double> limits;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char* name : {"Training/b/grad_norm", "Training/b/grad_norm_limit", "Training/a/grad_norm"}) {
      EXPECT_EQ(parts[i].values.at(name), whole[i].values.at(name)) << name << " of iteration " << i + 1;
    }
    limits.push_back(whole[i].values.at("Training/b/grad_norm_limit"));
    EXPECT_LE(whole[i].values.at("Training/a/grad_norm"), limits.back() * 1.0001) << "b has clipped before a";
  }
  EXPECT_GT(limits[7], limits[0]) << "the limit of a run that began anew is half of its first norm";
}

TEST_F(ConfiguredHooksTest, ListAtAResume_IsComparedWholeAndSectionsByTheirKeys) {
  ASSERT_OK(RegisterFakes(&registries_));
  const std::string directory = MakeTempDir("compared");
  const auto train = [&](const std::string& yaml) -> absl::Status {
    std::vector<std::string> warnings;
    ConfigNode config = FakeConfig(directory);
    MergeInto(&config, *ParseYaml(yaml, "test.yaml", &warnings));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries_, {}));
    SSL_RETURN_IF_ERROR(session->Step().status());
    return session->Finish();
  };
  const std::string clipper = "{type: grad_clipper, kwargs: {mode: average}}";
  ASSERT_OK(train("hooks: [" + clipper + ", {type: train_logger}]\nLOG_FREQUENCY: 2"));
  EXPECT_OK(train("hooks: [" + clipper + ", {type: train_logger}]\nLOG_FREQUENCY: 3"));
  const std::string changed = "hooks: [" + clipper + ", {type: train_logger, kwargs: {LOG_FREQUENCY: 4}}]";
  EXPECT_THAT(train(changed),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hooks: "), HasSubstr("config.CHECKPOINT.ALLOW_CHANGES=[hooks]"))));
  EXPECT_OK(train(changed + "\nCHECKPOINT: {ALLOW_CHANGES: [hooks]}"));
  EXPECT_OK(train("hooks: [{type: train_logger}]\nCHECKPOINT: {ALLOW_CHANGES: [hooks]}")) << "the clipper is gone";
}

TEST_F(ConfiguredHooksTest, HooksOfWhichARunHasOne_TakeNoName) {
  for (const std::string type : {"train_logger", "train_val_logger", "phase_metrics", "perf_stats"}) {
    EXPECT_THAT(MakeConfiguredHooks(Context("hooks:\n  - {type: " + type + ", name: second}")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("test.yaml:2: config.hooks.0.name is 'second'"),
                               HasSubstr("of which a run has one"), HasSubstr("expected no name"))))
        << type;
  }
  EXPECT_THAT(NamesFor("hooks: [{type: train_val_logger, name: train_logger, kwargs: {freq: 3}}]"), SizeIs(6));
}

TEST_F(ConfiguredHooksTest, NameOfAnotherHook_IsRefused) {
  EXPECT_THAT(
      MakeConfiguredHooks(Context("hooks:\n  - {type: grad_clipper, name: check_nan, kwargs: {mode: average}}")),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:2: config.hooks.0.name is 'check_nan'"),
                                                         HasSubstr("the name of another hook"))));
  EXPECT_THAT(MakeConfiguredHooks(Context("hooks: [{type: grad_clipper, name: ema, kwargs: {mode: average}}]")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the name of another hook")))
      << "one that is off is another hook as well";
}

// What a hook's own check refuses has the place and the whole path of its key, also where another hook has the same key
// with the same value, and for a key that is missing.
TEST_F(ConfiguredHooksTest, RefusedValues_AreNamedWithTheirPath) {
  const auto refused = [this](const std::string& text) { return MakeConfiguredHooks(Context(text)).status(); };
  EXPECT_THAT(refused("HOOKS:\n  MODEL_COMPLEXITY: {COMPUTE_COMPLEXITY: True, INPUT_SHAPE: [3]}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE has 1 numbers")));
  EXPECT_THAT(refused("hooks:\n- {type: train_logger, kwargs: {SUMMARY_WRITER: pavi}}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.hooks.0.kwargs.SUMMARY_WRITER is 'pavi'")));
  EXPECT_THAT(refused("hooks:\n- {type: grad_clipper, name: a, kwargs: {mode: average, norm_type: none}}\n"
                      "- {type: grad_clipper, name: b, kwargs: {mode: average, norm_type: none}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.hooks.0.kwargs.norm_type is 'none'")));
  EXPECT_THAT(
      refused("hooks:\n- {type: check_nan}\n- {type: grad_clipper, kwargs: {momentum: 0.5}}"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.yaml:3: config.hooks.1.kwargs.mode is missing")));
  EXPECT_THAT(
      refused("hooks: [{type: grad_clipper, name: a, kwargs: {mode: average, momentum: 0.5}}, "
              "{type: grad_clipper, name: b, kwargs: {momentum: 0.5}}]"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.yaml:1: config.hooks.1.kwargs.mode is missing")))
      << "of equal values on one line";
}

TEST_F(ConfiguredHooksTest, EarlyStopOnWhatIsNeverMeasured_IsRefused) {
  for (const auto& [where, key] : std::vector<std::pair<std::string, std::string>>{
           {"HOOKS: {EARLY_STOP: {METRIC: Testing/loss_mean}}", "config.HOOKS.EARLY_STOP.METRIC"},
           {"hooks: [{type: early_stop, kwargs: {METRIC: Testing/loss_mean}}]", "config.hooks.0.kwargs.METRIC"}}) {
    EXPECT_OK(MakeConfiguredHooks(Context("TEST_MODEL: True\n" + where)));
    EXPECT_THAT(MakeConfiguredHooks(Context("TEST_MODEL: False\n" + where)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("test.yaml:2: ", key, " is 'Testing/loss_mean'")),
                               HasSubstr("config.TEST_MODEL is false (test.yaml:1)"))));
  }
  EXPECT_THAT(MakeConfiguredHooks(Context("TEST_ONLY: True\nHOOKS: {EARLY_STOP: {METRIC: Training/loss_mean}}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("METRIC is 'Training/loss_mean'"), HasSubstr("config.TEST_ONLY is true"))));
}

// What hooks say while the run goes on; the list is compared whole when it goes on with another one.
TEST_F(ConfiguredHooksTest, HooksOfTheList_NameTheirKeysThere) {
  FakeStep step;
  step.context.meter_reports = {{"loss", {{"mean", "", std::nan("")}}}};
  ASSERT_OK_AND_ASSIGN(auto hooks, MakeConfiguredHooks(Context(
                                       "METERS: {names: [silent]}\n"
                                       "hooks: [{type: early_stop, kwargs: {METRIC: Training/loss_mean, PATIENCE: 1}}, "
                                       "{type: early_stop, name: other, kwargs: {METRIC: Training/silent_words}}, "
                                       "{type: BestCheckpointer, kwargs: {val_metric: Training/silent_words}}]")));
  std::string refused;
  for (const std::unique_ptr<Hook>& hook : hooks) {
    if (hook->name() != "early_stop" && hook->name() != "best_checkpoint") continue;
    absl::StrAppend(&refused, hook->OnPhaseEnd(step.context).message(), "\n");
  }
  EXPECT_THAT(step.context.end_reason, HasSubstr("with a larger config.hooks.0.kwargs.PATIENCE and "
                                                 "config.CHECKPOINT.ALLOW_CHANGES=[hooks] the same command goes on"));
  EXPECT_THAT(refused, AllOf(HasSubstr("config.hooks.1.kwargs.METRIC is 'Training/silent_words'"),
                             HasSubstr("config.hooks.2.kwargs.METRICS is 'Training/silent_words'")));
}

TEST_F(ConfiguredHooksTest, Sinks_NeedARunDirectory) {
  EXPECT_THAT(*MakeConfiguredSinks(Context("HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: true}}")), IsEmpty());
  EXPECT_THAT(registries_.metric_sinks.Make("jsonl", ConfigNode::Map(), Context("{}")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("metrics.jsonl")));
}

TEST_F(ConfiguredHooksTest, Sinks_WriteIntoTheRunDirectory) {
  const std::string directory = MakeTempDir("run");
  ASSERT_OK_AND_ASSIGN(const auto sinks,
                       MakeConfiguredSinks(Context("HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: true}}", directory)));

  ASSERT_THAT(sinks, SizeIs(2));
  for (const auto& sink : sinks) ASSERT_OK(sink->Write({1, 0, {{"a", 1.0}}}));

  EXPECT_TRUE(PosixFileSystem().Exists(directory + "/metrics.jsonl"));
  EXPECT_THAT(*PosixFileSystem().List(directory + "/tb_logs"), SizeIs(1));
}

TEST_F(ConfiguredHooksTest, Files_AreWrittenThroughTheRunsFileSystem) {
  const std::string directory = MakeTempDir("run");
  FaultFileSystem faults(PosixFileSystem(), directory);
  Context("HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: true}}", directory);
  const BuildContext context{config_, registries_, *communicator_, 0, directory, 0, faults};
  ASSERT_OK_AND_ASSIGN(const auto hooks, MakeConfiguredHooks(context));
  ASSERT_OK_AND_ASSIGN(const auto sinks, MakeConfiguredSinks(context));
  faults.FailCall(faults.calls() + 1, ENOSPC, FaultFileSystem::Repeat::kFromThenOn);
  for (const auto& sink : sinks) {
    const absl::Status written = sink->Write({1, 0, {{"a", 1.0}}});
    EXPECT_FALSE(written.ok() && sink->Flush().ok());
  }
  EXPECT_GE(faults.failed_calls(), 2);
  FakeStep step;
  for (const auto& hook : hooks) {
    if (hook->name() != "phase_metrics") continue;
    EXPECT_THAT(hook->OnPhaseEnd(step.context), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("errno 28")));
  }
}

TEST_F(ConfiguredHooksTest, Tensorboard_IsOffByDefault) {
  EXPECT_THAT(*MakeConfiguredSinks(Context("{}", MakeTempDir("run"))), SizeIs(1));
}

}  // namespace
}  // namespace ssl
