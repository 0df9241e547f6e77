// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/checkpoint_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

CheckpointCadenceOptions Every(int64_t epochs, int64_t iterations) {
  CheckpointCadenceOptions cadence;
  cadence.epoch_frequency = epochs;
  cadence.iteration_frequency = iterations;
  return cadence;
}

constexpr int64_t kStepsPerEpoch = 4;

// Runs epochs of kStepsPerEpoch steps, each followed by a test phase of as many.
void Train(CheckpointHook& hook, FakeStep& step, int64_t epochs) {
  step.context.num_epochs = epochs;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    step.state.train_phase_index = epoch;
    for (const bool training : {true, false}) {
      step.state.training = training;
      for (int64_t i = 0; i < kStepsPerEpoch; ++i) {
        if (training) ++step.state.iteration;
        ASSERT_OK(hook.OnStep(step.context));
      }
      ASSERT_OK(hook.OnPhaseEnd(step.context));
    }
  }
}

TEST(CheckpointHook, EveryEpoch_SavesOnceAfterEachTrainPhase) {
  FakeStep step;
  CheckpointHook hook(Every(1, -1));

  Train(hook, step, 3);

  EXPECT_THAT(step.saver.iterations, ElementsAre(4, 8, 12));
}

TEST(CheckpointHook, EveryThirdEpoch_SavesTheFirstTheFourthAndTheLast) {
  FakeStep step;
  CheckpointHook hook(Every(3, -1));

  Train(hook, step, 6);

  EXPECT_THAT(step.saver.iterations, ElementsAre(4, 16, 24));
}

TEST(CheckpointHook, Iterations_CountTrainingStepsOnly) {
  FakeStep step;
  CheckpointHook hook(Every(0, 3));

  Train(hook, step, 2);

  EXPECT_THAT(step.saver.iterations, ElementsAre(3, 6));
}

TEST(CheckpointHook, UnitedPerception_SavesOnItsOwnGrid) {
  FakeStep step;
  CheckpointCadenceOptions options = Every(2, -1);
  options.epoch_start = 5;
  options.epoch_anchor = 0;
  CheckpointHook hook(options);

  Train(hook, step, 11);

  EXPECT_THAT(step.saver.iterations, ElementsAre(6 * 4, 8 * 4, 10 * 4, 11 * 4));
  EXPECT_THAT(hook.Plan(), SizeIs(1));
}

TEST(CheckpointHook, Rolling_KeepsOneBesideThoseThatAreDueAnyway) {
  FakeStep step;
  CheckpointCadenceOptions options = Every(4, -1);
  options.epoch_anchor = 0;
  options.rolling_start = 3;
  options.rolling_frequency = 1;
  CheckpointHook hook(options);

  Train(hook, step, 6);

  EXPECT_THAT(step.saver.iterations, ElementsAre(12, 16, 20, 24)) << "epochs 3, 4, 5, 6";
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("rolling", 24)));
  EXPECT_THAT(step.saver.replaced, ElementsAre(12, 20)) << "4 is due by CHECKPOINT_FREQUENCY as well";
}

TEST(CheckpointHook, Rolling_IsIndependentOfTheFrequency) {
  FakeStep step;
  CheckpointCadenceOptions options = Every(-1, -1);
  options.rolling_start = 2;
  options.rolling_frequency = 2;
  CheckpointHook hook(options);

  Train(hook, step, 7);

  EXPECT_THAT(step.saver.iterations, ElementsAre(8, 16, 24)) << "anchored at its start";
  EXPECT_THAT(step.saver.replaced, ElementsAre(8, 16));
}

// As a process leaves it that is killed between the save and the naming.
TEST(CheckpointHook, Rolling_WithoutItsName_GetsItAtTheStart) {
  FakeStep step;
  CheckpointCadenceOptions options = Every(-1, -1);
  options.rolling_start = 1;
  options.rolling_frequency = 2;
  CheckpointHook hook(options);
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_THAT(step.saver.names, IsEmpty()) << "nothing was trained yet";

  Train(hook, step, 3);
  step.saver.names["rolling"] = 4;
  step.state.phase_ended = 0;
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("rolling", 4))) << "within a phase";
  step.state.phase_ended = 1;
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_THAT(step.saver.names, ElementsAre(Pair("rolling", 12)));
}

TEST(CheckpointHook, NamesOfRollingCheckpoints_AreKnownFromTheConfiguration) {
  const auto names = [](const std::string& yaml) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> config = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(config.status());
    return RollingCheckpointNames(*config);
  };
  EXPECT_THAT(names("{CHECKPOINT: {CHECKPOINT_FREQUENCY: 1}}"), IsEmpty());
  EXPECT_THAT(names("{CHECKPOINT: {ROLLING_START: -1}}"), IsEmpty());
  EXPECT_THAT(names("{CHECKPOINT: {ROLLING_START: 2}}"), ElementsAre("rolling"));
  EXPECT_THAT(names("{hooks: [{type: checkpoint, kwargs: {ROLLING_START: 1}}, {type: checkpoint, name: second, "
                    "kwargs: {ROLLING_START: 3}}, {type: checkpoint, name: third}]}"),
              ElementsAre("rolling", "rolling.second"));
}

TEST(CheckpointHook, FailedSave_IsReturned) {
  FakeStep step;
  CheckpointHook hook(Every(1, 1));
  step.state.iteration = 1;
  step.state.train_phase_index = 0;
  step.saver.result = absl::ResourceExhaustedError("disk is full");

  EXPECT_THAT(hook.OnStep(step.context), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk")));
  EXPECT_THAT(hook.OnPhaseEnd(step.context), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(CheckpointHook, FileSystemWithoutRoomForACheckpoint_IsToldOnceAfterTheFirstUpdate) {
  const auto warnings = [](int64_t floats, int64_t keep_last) {
    FakeStep step;
    step.model.parameters = {{"weight", at::zeros({1}).expand({floats})}};  // takes no memory
    CheckpointHook hook(Every(-1, -1), MakeTempDir("full_disk"), keep_last);
    step.state.iteration = step.context.first_iteration = 40;
    const CapturedLog log;
    Train(hook, step, 1);
    return log.warnings;
  };
  constexpr int64_t kHuge = int64_t{1} << 50;
  EXPECT_THAT(warnings(kHuge, 2), ElementsAre(AllOf(HasSubstr("full_disk"), HasSubstr("takes at least 4194304.0 GiB"),
                                                    HasSubstr("KEEP_LAST keeps the newest 2"),
                                                    HasSubstr("another config.CHECKPOINT.DIR"))));
  EXPECT_THAT(warnings(kHuge, 0), ElementsAre(HasSubstr("KEEP_LAST keeps all")));
  EXPECT_THAT(warnings(0, 2), IsEmpty());
}

TEST(CheckpointHook, RunWithoutCheckpoints_IsLeftAlone) {
  FakeStep step;
  CheckpointHook hook(Every(1, 1));
  step.context.checkpoints = nullptr;

  Train(hook, step, 2);

  EXPECT_EQ(step.state.iteration, 2 * kStepsPerEpoch);
}

}  // namespace
}  // namespace ssl
