// SPDX-License-Identifier: Apache-2.0
//
// Resuming with other batches, or other test phases, than the run had: by rules, and with whole sessions.
#include "ssl/core/resume_position.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/schedule.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr int64_t kUpdates = 10;  // of an epoch

TrainState At(int64_t phase_index, int64_t train_phase_index, int64_t iteration, int64_t batch, bool ended) {
  TrainState state;
  state.phase_index = phase_index;
  state.train_phase_index = train_phase_index;
  state.iteration = iteration;
  state.batch_in_phase = batch;
  state.phase_ended = ended ? 1 : 0;
  return state;
}

std::vector<Phase> Phases(const std::string& letters) {
  std::vector<Phase> phases;
  for (const char letter : letters) phases.push_back({letter == 'T'});
  return phases;
}

TEST(FitPositionTest, TheSameRun_StaysWhereItIs) {
  const std::vector<Phase> phases = Phases("TeTe");
  for (const TrainState& saved :
       {At(-1, -1, 0, 0, true), At(0, 0, 0, 0, false), At(0, 0, 7, 7, false), At(0, 0, 10, 10, false),
        At(0, 0, 10, 10, true), At(1, 0, 10, 3, true), At(2, 1, 13, 3, false), At(3, 1, 20, 5, true)}) {
    TrainState state = saved;
    ASSERT_OK(FitPosition(phases, kUpdates, &state)) << saved.iteration;
    EXPECT_EQ(state.phase_index, saved.phase_index);
    EXPECT_EQ(state.phase_ended, saved.phase_ended);
    EXPECT_EQ(state.batch_in_phase, saved.batch_in_phase);
  }
}

TEST(FitPositionTest, OtherBatchesInAnUpdate_AreCountedAnew) {
  for (const int64_t updates : {0, 7, 10}) {
    TrainState state = At(2, 1, 10 + updates, updates * 3, false);
    state.batches_per_update = 4;
    ASSERT_OK(FitPosition(Phases("TeTe"), kUpdates, &state));
    EXPECT_EQ(state.batch_in_phase, updates * 4);
  }
}

TEST(FitPositionTest, ATestPhaseInProgress_BeginsAnew) {
  TrainState state = At(1, 0, 10, 3, false);
  ASSERT_OK(FitPosition(Phases("TeTe"), kUpdates, &state));
  EXPECT_EQ(state.phase_index, 1);
  EXPECT_EQ(state.batch_in_phase, 0);
  EXPECT_EQ(state.phase_ended, 0);
  TrainState test_only = At(1, -1, 0, 3, false);
  ASSERT_OK(FitPosition(Phases("ee"), 0, &test_only));
  EXPECT_EQ(test_only.phase_index, 1);
}

// The last epoch is always tested: a longer run has that test elsewhere.
TEST(FitPositionTest, TestPhasesElsewhere_LeaveOutNoTraining) {
  TrainState finished = At(3, 1, 20, 5, true);  // of "TeTe", testing every 5 epochs
  ASSERT_OK(FitPosition(Phases("TeTTe"), kUpdates, &finished));
  EXPECT_EQ(finished.phase_index, 2);
  EXPECT_EQ(finished.phase_ended, 1);
  TrainState behind = At(7, 3, 40, 5, true);  // of "TeTeTeTe"
  ASSERT_OK(FitPosition(Phases("TTTT"), kUpdates, &behind));
  EXPECT_EQ(behind.phase_index, 3);
  EXPECT_EQ(behind.phase_ended, 1);
  TrainState first = At(0, 0, 3, 3, false);
  ASSERT_OK(FitPosition(Phases("TTT"), kUpdates, &first));
  EXPECT_EQ(first.phase_index, 0);
  EXPECT_EQ(first.phase_ended, 0);
  EXPECT_EQ(first.batch_in_phase, 3);
}

// Samplers count phases: the rest of the epoch would be drawn in the order of another one.
TEST(FitPositionTest, AnEpochInProgress_KeepsItsPhase) {
  TrainState state = At(2, 1, 13, 3, false);
  EXPECT_THAT(FitPosition(Phases("TTT"), kUpdates, &state),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("epoch 2"), HasSubstr("TEST_MODEL"))));
}

TEST(FitPositionTest, NumbersThatNoRunHas_AreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (TrainState state : {At(-5, -1, 0, 0, true), At(0, -2, 0, 0, true), At(kLeast, -1, 0, 0, true),
                           At(kMost, 0, 0, 0, true), At(0, kMost, 0, 0, true), At(0, kLeast, 0, 0, true),
                           At(0, 0, kMost, 0, true), At(0, 0, kLeast, 0, true), At(0, 0, -1, 0, false)}) {
    EXPECT_THAT(FitPosition(Phases("TeTe"), kUpdates, &state), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(FitPositionTest, AnotherNumberOfUpdates_IsNoPlaceInTheRun) {
  for (TrainState state : {At(0, 0, 11, 11, false), At(0, 0, 9, 9, true), At(2, 1, 7, 2, false), At(2, 1, 15, 5, true),
                           At(-1, -1, 3, 0, true), At(2, 2, 25, 5, false)}) {
    EXPECT_THAT(FitPosition(Phases("TeTe"), kUpdates, &state),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("iteration ", state.iteration)), HasSubstr("10 updates"))));
  }
}

// What VISSL's polynomial schedule is behind the end of training.
class NotBehindTheEnd : public Schedule {
 public:
  double ValueAt(double where) const override { return 0.02 * std::pow(1.0 - where, 0.9); }
  UpdateInterval update_interval() const override { return UpdateInterval::kStep; }
};

class ResumeWithOtherBatchesTest : public ::testing::Test {
 protected:
  ResumeWithOtherBatchesTest() : config_(FakeConfig(run_)) {
    EXPECT_OK(RegisterFakes(&registries_));
    EXPECT_OK(registries_.schedules.Register("power", [](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<Schedule>>(std::make_unique<NotBehindTheEnd>());
    }));
    Set("OPTIMIZER.param_schedulers.lr.name", "power");
    config_.SetPath("CHECKPOINT.ALLOW_CHANGES",
                    ConfigNode::FromStrings({"DATA.TRAIN", "OPTIMIZER", "TEST_MODEL", "TEST_EVERY_NUM_EPOCH"}));
  }

  void Set(const std::string& key, const std::string& value) { config_.SetPath(key, ConfigNode::Scalar(value)); }

  // Trains with batches of `batch_size` of `samples` samples, `accumulated` of them to an update, to `stop_at` or the
  // end. Notes where each step is in the run, and the samples of the second epoch.
  absl::Status Train(int64_t samples, int64_t batch_size, int64_t accumulated, int64_t stop_at = -1) {
    Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", absl::StrCat(batch_size));
    Set("OPTIMIZER.grad_acc_steps", absl::StrCat(accumulated));
    SessionOptions options;
    options.train_source = std::make_unique<FakeSource>(samples, batch_size, 0, 1);
    options.test_source = std::make_unique<FakeSource>(test_samples_, 4, 0, 1);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config_, registries_, std::move(options)));
    auto forward = std::make_unique<RecordingHook>("forward", HookStage::kObserve, &events_);
    forward->At("OnForward", [this](StepContext& context) {
      if (!context.state.training) ++tested_;
      if (!context.state.training || context.state.train_phase_index != 1) return absl::OkStatus();
      const at::Tensor& indices = context.batch->indices;
      for (int64_t i = 0; i < indices.numel(); ++i) samples_.insert(indices[i].item<int64_t>());
      return absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(forward)));
    // Each update of an epoch has another loss, its batches the same.
    auto loss = std::make_unique<RecordingHook>("loss", HookStage::kObserve, &events_);
    loss->At("OnLossAndMeter", [](StepContext& context) {
      context.loss = context.loss.mul(0).add(context.state.iteration % 10);
      return absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(loss)));
    auto mean = std::make_unique<RecordingHook>("mean", HookStage::kObserve, &events_);
    mean->At("OnPhaseEnd", [this](StepContext& context) {
      if (context.state.training) mean_losses_.push_back(context.meter_reports.at(0).values.at(0).value);
      return absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(mean)));
    auto stop = std::make_unique<RecordingHook>("stop", HookStage::kPersist, &events_);
    stop->At("OnStep", [this, stop_at](StepContext& context) {
      where_.push_back(context.state.where());
      if (context.state.iteration == stop_at) context.stop.Request(kStopTerminate);
      return absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(stop)));
    SSL_RETURN_IF_ERROR(session->Train().status());
    iteration_ = session->state().iteration;
    return absl::OkStatus();
  }

  const std::string run_ = MakeTempDir("resume_other_batches");
  Registries registries_;
  ConfigNode config_;
  std::vector<std::string> events_;
  std::vector<double> where_;
  std::set<int64_t> samples_;
  std::vector<double> mean_losses_;  // of the epochs that have ended
  int64_t tested_ = 0;
  int64_t test_samples_ = 40;
  int64_t iteration_ = 0;
};

// The way out of exit code 6, at any step.
TEST_F(ResumeWithOtherBatchesTest, HalfTheBatchAndTwiceTheAccumulation_GoesOnWithTheSamplesThatAreLeft) {
  for (const int64_t stop_at : {1, 9, 10, 11, 15, 19}) {
    ASSERT_OK(PosixFileSystem().RemoveAll(run_));
    where_.clear();
    samples_.clear();
    ASSERT_OK(Train(40, 4, 1, stop_at));
    const size_t before = samples_.size();
    ASSERT_OK(Train(40, 2, 2));
    EXPECT_EQ(iteration_, 20) << stop_at;
    EXPECT_THAT(where_, Each(Le(1.0))) << stop_at;
    EXPECT_EQ(where_.size(), 20u) << stop_at;
    EXPECT_EQ(before, std::max<int64_t>(stop_at - 10, 0) * 4);
    EXPECT_EQ(samples_.size(), 40u) << "after a stop at " << stop_at;
  }
}

TEST_F(ResumeWithOtherBatchesTest, TheMeanLossOfTheEpoch_IsThatOfItsUpdates) {
  ASSERT_OK(Train(40, 4, 1, 13));
  ASSERT_OK(Train(40, 2, 2, 16));
  ASSERT_OK(Train(40, 4, 1));
  EXPECT_THAT(mean_losses_, ElementsAre(DoubleEq(4.5), DoubleEq(4.5)));
}

TEST_F(ResumeWithOtherBatchesTest, AndBack) {
  ASSERT_OK(Train(40, 2, 2, 13));
  ASSERT_OK(Train(40, 4, 1, 16));
  ASSERT_OK(Train(40, 1, 4));
  EXPECT_EQ(iteration_, 20);
  EXPECT_EQ(where_.size(), 20u);
  EXPECT_EQ(samples_.size(), 40u);
}

TEST_F(ResumeWithOtherBatchesTest, OtherUpdatesInAnEpoch_AreRefusedAtAnyStep) {
  for (const int64_t stop_at : {5, 10, 15}) {
    ASSERT_OK(PosixFileSystem().RemoveAll(run_));
    ASSERT_OK(Train(40, 4, 1, stop_at));
    EXPECT_THAT(Train(20, 4, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10 updates")));
    EXPECT_THAT(Train(40, 2, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10 updates")));
    EXPECT_THAT(Train(40, 4, 2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10 updates")));
  }
}

TEST_F(ResumeWithOtherBatchesTest, ATestPhaseInProgress_BeginsAnewWithOtherData) {
  Set("TEST_MODEL", "true");
  for (const int64_t samples : {8, 40, 80}) {
    ASSERT_OK(PosixFileSystem().RemoveAll(run_));
    test_samples_ = 40;
    // Stops at the third test batch of the first epoch: counted in batches, as nothing else counts there.
    {
      Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "4");
      Set("OPTIMIZER.grad_acc_steps", "1");
      SessionOptions options;
      options.train_source = std::make_unique<FakeSource>(40, 4, 0, 1);
      options.test_source = std::make_unique<FakeSource>(test_samples_, 4, 0, 1);
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                           Session::Create(config_, registries_, std::move(options)));
      for (int i = 0; i < 13; ++i) ASSERT_OK(session->Step().status());
      ASSERT_FALSE(session->state().training);
      ASSERT_OK(session->Finish());
    }
    test_samples_ = samples;
    tested_ = 0;
    ASSERT_OK(Train(40, 4, 1));
    EXPECT_EQ(tested_, 2 * samples / 4);
  }
}

TEST_F(ResumeWithOtherBatchesTest, TestPhasesThatGo_LeaveTheTraining) {
  for (const int64_t stop_at : {7, 10, 20}) {
    ASSERT_OK(PosixFileSystem().RemoveAll(run_));
    samples_.clear();
    Set("TEST_MODEL", "true");
    ASSERT_OK(Train(40, 4, 1, stop_at));
    Set("TEST_MODEL", "false");
    ASSERT_OK(Train(40, 4, 1)) << stop_at;
    EXPECT_EQ(iteration_, 20) << stop_at;
    EXPECT_EQ(samples_.size(), 40u) << stop_at;
  }
  ASSERT_OK(PosixFileSystem().RemoveAll(run_));
  Set("TEST_MODEL", "true");
  ASSERT_OK(Train(40, 4, 1, 13));
  Set("TEST_MODEL", "false");
  EXPECT_THAT(Train(40, 4, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TEST_MODEL")));
}

TEST_F(ResumeWithOtherBatchesTest, MoreEpochs_AreTrainedWhateverWasTested) {
  Set("TEST_MODEL", "true");
  Set("TEST_EVERY_NUM_EPOCH", "5");
  ASSERT_OK(Train(40, 4, 1));
  Set("OPTIMIZER.num_epochs", "3");
  ASSERT_OK(Train(40, 4, 1));
  EXPECT_EQ(iteration_, 30);
}

}  // namespace
}  // namespace ssl
