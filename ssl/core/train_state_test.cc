// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/train_state.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

TEST(TrainStateTest, Where_IsTheFinishedFraction) {
  TrainState state;
  EXPECT_EQ(state.where(), 0.0) << "a run without updates";
  state.max_iterations = 40;
  state.iteration = 10;
  EXPECT_EQ(state.where(), 0.25);
  state.iteration = 40;
  EXPECT_EQ(state.where(), 1.0);
}

TEST(TrainStateTest, WherePhaseStarted_IsTheSameInTheWholePhase) {
  for (const int64_t batches_per_update : {1, 4}) {
    TrainState state;
    state.max_iterations = 40;
    state.batches_per_update = batches_per_update;
    for (int64_t update = 0; update < 10; ++update) {
      state.iteration = 20 + update;
      state.batch_in_phase = update * batches_per_update;
      EXPECT_EQ(state.where_phase_started(), 0.5) << update << " of " << batches_per_update;
    }
  }
}

TEST(TrainStateTest, Counters_AreSavedUnderVisslsNames_AndWhatIsDerivedIsNot) {
  TrainState state;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> saved, CollectState(state));
  std::vector<std::string> names;
  for (const NamedTensor& entry : saved) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("phase_index", "train_phase_index", "iteration", "batch_in_phase", "phase_ended",
                                 "num_updates"));
}

TEST(TrainStateTest, Restored_IsWhatWasSaved) {
  TrainState state;
  state.phase_index = 3;
  state.train_phase_index = 2;
  state.iteration = 71;
  state.batch_in_phase = 11;
  state.phase_ended = 0;
  state.samples_seen = 568;
  state.max_iterations = 100;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> saved, CollectState(state));

  TrainState restored;
  restored.max_iterations = 200;
  ASSERT_OK(RestoreState(restored, saved, "memory"));

  EXPECT_EQ(restored.phase_index, 3);
  EXPECT_EQ(restored.train_phase_index, 2);
  EXPECT_EQ(restored.iteration, 71);
  EXPECT_EQ(restored.batch_in_phase, 11);
  EXPECT_EQ(restored.phase_ended, 0);
  EXPECT_EQ(restored.samples_seen, 568);
  EXPECT_EQ(restored.max_iterations, 200) << "how long training is, the configuration says";
}

TEST(TrainStateTest, Finished_IsTheEndOfTheLastPhase) {
  TrainState state;
  EXPECT_FALSE(state.finished(1)) << "before the first phase";
  EXPECT_TRUE(state.finished(0)) << "a run without phases";
  state.phase_index = 1;
  state.phase_ended = 0;
  EXPECT_FALSE(state.finished(2)) << "within the last phase";
  state.phase_ended = 1;
  EXPECT_TRUE(state.finished(2));
  EXPECT_FALSE(state.finished(3));
}

}  // namespace
}  // namespace ssl
