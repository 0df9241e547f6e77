// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_checkpoint_hook.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

const std::vector<std::string>& Blocks() {
  static const auto* const blocks =
      new std::vector<std::string>{"conv1", "res1", "res2.0", "res2.1", "res3.0", "res3.1", "res3.2"};
  return *blocks;
}

std::vector<std::pair<size_t, size_t>> Pairs(const absl::StatusOr<std::vector<BlockRange>>& ranges) {
  std::vector<std::pair<size_t, size_t>> pairs;
  EXPECT_OK(ranges);
  for (const BlockRange& range : *ranges) pairs.emplace_back(range.begin, range.end);
  return pairs;
}

absl::StatusOr<CandidateRule> Read(const std::string& text) {
  std::vector<std::string> warnings;
  return ReadCandidateRule(*ParseYaml(text, "test.yaml", &warnings), "test.yaml:1: checkpoint_patterns");
}

TEST(CandidatesTest, BlocksStagesOrNames) {
  EXPECT_EQ(Pairs(Candidates({}, Blocks())).size(), 7u);
  EXPECT_THAT(Pairs(Candidates({1, {}}, Blocks())), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 4), Pair(4, 7)));
  EXPECT_THAT(Pairs(Candidates({0, {"res3", "res2.1"}}, Blocks())), ElementsAre(Pair(3, 4), Pair(4, 7)));
  EXPECT_THAT(Candidates({0, {"res2.7"}}, Blocks()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("checkpoint_patterns names 'res2.7', which is no")));
}

TEST(CandidateRuleTest, UnitedPerceptionsForm) {
  ASSERT_OK_AND_ASSIGN(CandidateRule rule, Read("{backbone: {patterns_mode: level, level: {num: default}}}"));
  EXPECT_EQ(rule.level, 0);
  ASSERT_OK_AND_ASSIGN(rule, Read("{backbone: {patterns_mode: level, level: {num: 1}, share_weight_num: 5}}"));
  EXPECT_EQ(rule.level, 1);
  ASSERT_OK_AND_ASSIGN(rule, Read("{backbone: {patterns_mode: name, name_list: res2}}"));
  EXPECT_THAT(rule.names, testing::ElementsAre("res2"));
  ASSERT_OK_AND_ASSIGN(rule, Read("{backbone: {patterns_mode: name, name_list: [res2, res3.1]}}"));
  EXPECT_THAT(rule.names, ElementsAre("res2", "res3.1"));
  ASSERT_OK_AND_ASSIGN(rule, Read("{}"));
  EXPECT_THAT(rule.names, IsEmpty());
}

TEST(CandidateRuleTest, WrongForms_AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{neck: {patterns_mode: level}}", "checkpoint_patterns.neck is no part of a model"},
      {"{backbone: {}, trunk: {}}", "has backbone and trunk, which are the same here"},
      {"{backbone: {patterns_mode: depth}}", "patterns_mode"},
      {"{backbone: {patterns_mode: name}}", "name_list is missing"},
      {"{backbone: {level: {num: none}}}", "level.num is 'none'"},
      {"{backbone: {level: {num: 0}}}", "level.num is '0'"},
      {"{backbone: {levels: 1}}", "levels"},
      {"[1]", "is no map"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Read(text).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
}

TEST(MemoryCheckpointHookTest, Static_RecomputesAllCandidates) {
  FakeStep step;
  step.model.blocks = Blocks();
  MemoryCheckpointHook hook(/*enable=*/true, {1, {}}, std::nullopt);
  ASSERT_OK(hook.OnStart(step.context));
  ASSERT_NE(step.model.policy, nullptr);
  const std::vector<RecomputePlan> plans = step.model.policy->Plan({{4, 32, 32}, {8, 16, 16}});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].recomputed.size(), 4u);
  ASSERT_OK(hook.OnEnd(step.context));
  EXPECT_EQ(step.model.policy, nullptr);
}

TEST(MemoryCheckpointHookTest, Disabled_DoesNothing) {
  FakeStep step;
  step.model.blocks = {};
  MemoryCheckpointHook hook(/*enable=*/false, {}, std::nullopt);
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_EQ(step.model.policy, nullptr);
}

TEST(MemoryCheckpointHookTest, StaticCheckpointingThatItOverrules_IsWarnedOf) {
  const auto warnings = [](const std::string& kwargs, const std::string& more) {
    const CapturedLog log;
    EXPECT_OK(OpenTinyRun("hooks: [{type: memory_checkpoint, kwargs: " + kwargs + "}]\n" + more).status());
    return log.warnings;
  };
  const std::string parts =
      "MODEL: {ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: True, NUM_ACTIVATION_CHECKPOINTING_SPLITS: 2}}";
  EXPECT_THAT(warnings("{}", parts),
              ElementsAre(AllOf(HasSubstr("test.yaml:2: config.MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_"),
                                HasSubstr("has no effect: the hook memory_checkpoint says what is recomputed"))));
  EXPECT_THAT(warnings("{enable: False}", parts), IsEmpty());
  EXPECT_THAT(warnings("{}", ""), IsEmpty());
}

TEST(MemoryCheckpointHookTest, ModelWithoutBlocks_IsRefused) {
  FakeStep step;
  step.model.blocks = {};
  MemoryCheckpointHook hook(/*enable=*/true, {}, std::nullopt);
  EXPECT_THAT(hook.OnStart(step.context),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no chain of blocks")));
}

TEST(MemoryCheckpointHookTest, Dynamic_NeedsTensorMemory) {
  FakeStep step;
  step.model.blocks = Blocks();
  const DynamicCheckpointOptions dynamic;
  MemoryCheckpointHook hook(/*enable=*/true, {}, dynamic);
  // Once it is installed, it stays so for the process.
  if (!TensorMemoryIsInstalled()) {
    EXPECT_THAT(hook.OnStart(step.context), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                     AllOf(HasSubstr("dc_cfg"), HasSubstr("InstallTensorMemory"))));
  }
  InstallTensorMemory();
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_TRUE(hook.planner()->warming_up());
  ASSERT_OK(hook.OnEnd(step.context));
}

TEST(MemoryCheckpointHookTest, WarmUpThatNeverEnds_IsWarnedOf) {
  InstallTensorMemory();
  const auto logged = [](int64_t iteration, int64_t batches_per_update) {
    CapturedLog log;
    FakeStep step;
    step.state.iteration = iteration;
    step.state.max_iterations = 40;
    step.state.batches_per_update = batches_per_update;
    MemoryCheckpointHook hook(/*enable=*/true, {}, DynamicCheckpointOptions());  // 30 batches
    EXPECT_OK(hook.OnStart(step.context));
    return log.Text();
  };
  EXPECT_THAT(logged(0, 1), IsEmpty());
  EXPECT_THAT(logged(10, 2), IsEmpty());
  EXPECT_THAT(logged(10, 1), AllOf(HasSubstr("dc_cfg.warmup_iters is 30, and the run has 30 batches more"),
                                   HasSubstr("expected fewer than 30")));
  EXPECT_THAT(logged(40, 1), IsEmpty()) << "the run is over";
}

// Trains to the end in `directory`, in bfloat16 unless `overrides` say otherwise; the weights' bytes.
std::string TrainIn(const std::string& directory, const std::string& kwargs, const std::string& overrides = "",
                    const std::string& checkpoint = "") {
  const std::string config =
      absl::StrCat("hooks: [{type: memory_checkpoint, kwargs: ", kwargs, "}]\n", "CHECKPOINT: {DIR: ", directory,
                   ", CHECKPOINT_ITER_FREQUENCY: 1, KEEP_LAST: 20", checkpoint, "}\n",
                   overrides.empty() ? "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}}" : overrides);
  const absl::StatusOr<std::unique_ptr<Session>> session = OpenTinyRun(config);
  EXPECT_OK(session.status());
  if (!session.ok()) return "";
  EXPECT_OK((*session)->Train().status());
  const absl::StatusOr<std::string> weights =
      PosixFileSystem().Read(directory + "/checkpoints/step_10/model.safetensors");
  EXPECT_OK(weights.status());
  return weights.value_or("");
}

// In the short format the sum of gradients depends on what is recomputed, so it shows a repeated warm-up.
TEST(MemoryCheckpointHookTest, ARunThatResumes_EndsAsTheUndisturbedOne) {
  InstallTensorMemory();
  const std::string directory = MakeTempDir("memory_checkpoint");
  const std::string kwargs = "{dc_cfg: {warmup_iters: 4}}";
  const std::string undisturbed = TrainIn(directory, kwargs);
  EXPECT_NE(undisturbed, TrainIn(MakeTempDir("long_warm_up"), "{dc_cfg: {warmup_iters: 8}}"));
  for (const char* step : {"2", "4", "7"}) {
    SCOPED_TRACE(step);
    const CapturedLog log;
    EXPECT_EQ(TrainIn(directory, kwargs, "", absl::StrCat(", RESUME_FROM: ", step)), undisturbed);
    EXPECT_THAT(log.Text(), AllOf(HasSubstr("memory_checkpoint: tensors take"), Not(HasSubstr("begins anew"))));
  }
}

TEST(MemoryCheckpointHookTest, MeasurementsInAnotherNumberFormat_AreMadeAnew) {
  InstallTensorMemory();
  const std::string directory = MakeTempDir("memory_checkpoint");
  const std::string kwargs = "{dc_cfg: {warmup_iters: 2}}";
  TrainIn(directory, kwargs);
  const CapturedLog log;
  TrainIn(directory, kwargs, "MODEL: {AMP_PARAMS: {USE_AMP: False}}",
          ", RESUME_FROM: 5, ALLOW_CHANGES: [MODEL.AMP_PARAMS]");
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("in another number format: the warm-up begins anew"),
                                HasSubstr("memory_checkpoint: tensors take")));
}

TEST(MemoryCheckpointHookTest, LimitThatCannotBeKept_IsWarnedOf) {
  InstallTensorMemory();
  const auto warnings = [](const std::string& max_memory) {
    const CapturedLog log;
    TrainIn(MakeTempDir("memory_limit"), absl::StrCat("{dc_cfg: {warmup_iters: 2, max_memory: ", max_memory, "}}"),
            "MODEL: {TRUNK: {RESNETS: {WIDTH_MULTIPLIER: 0.5}}, HEAD: {PARAMS: [[mlp, {dims: [256, 16]}]]}}");
    return log.warnings;
  };
  EXPECT_THAT(warnings("1.0e-6"),
              ElementsAre(AllOf(
                  HasSubstr("config.hooks.0.kwargs.dc_cfg.max_memory is 1e-06 GiB (0.0 MiB), which cannot be kept"),
                  HasSubstr("MiB although all candidates are recomputed; expected at least 0.0"),
                  HasSubstr("BATCHSIZE_PER_REPLICA"))));
  EXPECT_THAT(warnings("1"), IsEmpty());
}

}  // namespace
}  // namespace ssl
