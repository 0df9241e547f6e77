// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpointer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/testing/fake_run.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first file is not made before somebody lets it.
class HeldFileSystem : public FaultFileSystem {
 public:
  explicit HeldFileSystem(const std::string& root) : FaultFileSystem(PosixFileSystem(), root) {}
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    released.WaitForNotification();
    return FaultFileSystem::Create(path);
  }
  absl::Notification released;
};

class CheckpointerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Checkpointer> Make(FileSystem& file_system, FakeRun& run, bool in_background = true) {
    CheckpointerOptions options;
    options.store.directory = directory_;
    options.num_phases = 2;
    options.in_background = in_background;
    absl::StatusOr<std::unique_ptr<Checkpointer>> made =
        Checkpointer::Make(std::move(options), file_system, *communicator_, run, run.state);
    EXPECT_OK(made);
    EXPECT_OK((*made)->Open());
    return *std::move(made);
  }
  // The weight in a saved checkpoint.
  double Saved(int64_t iteration) {
    FakeRun other;
    EXPECT_OK(Make(PosixFileSystem(), other)->Restore(iteration));
    return other.weight[0][0].item<double>();
  }

  const std::string directory_ = MakeTempDir("checkpointer") + "/checkpoints";
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(CheckpointerTest, Save_KeepsTheStateOfItsMoment_WhileTrainingGoesOn) {
  HeldFileSystem files(MakeTempDir("held"));
  FakeRun run;
  run.state.iteration = 5;
  const std::unique_ptr<Checkpointer> checkpointer = Make(files, run);
  ASSERT_OK(checkpointer->Save());
  EXPECT_EQ(checkpointer->last_saved(), -1);
  EXPECT_OK(checkpointer->Poll());
  run.weight.fill_(2.0);
  run.state.iteration = 6;
  files.released.Notify();
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(checkpointer->last_saved(), 5);
  EXPECT_EQ(Saved(5), 1.0);
}

TEST_F(CheckpointerTest, NextSave_WaitsForTheOneInFlight) {
  HeldFileSystem files(MakeTempDir("held"));
  FakeRun run;
  run.state.iteration = 5;
  const std::unique_ptr<Checkpointer> checkpointer = Make(files, run);
  ASSERT_OK(checkpointer->Save());
  // Asking for the same state once more does not wait.
  ASSERT_OK(checkpointer->Save());
  files.released.Notify();
  run.weight.fill_(2.0);
  run.state.iteration = 6;
  ASSERT_OK(checkpointer->Save());
  EXPECT_GE(checkpointer->last_saved(), 5);
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(Saved(6), 2.0);
  EXPECT_EQ(Saved(5), 1.0);
}

// As a save every few iterations that falls on an epoch's last one.
TEST_F(CheckpointerTest, SaveWithinAPhase_IsReplacedAtItsEnd) {
  FakeRun run;
  run.state.iteration = 5;
  run.state.phase_index = 0;
  run.state.phase_ended = 0;
  const std::unique_ptr<Checkpointer> checkpointer = Make(PosixFileSystem(), run);
  ASSERT_OK(checkpointer->Save());
  run.weight.fill_(2.0);
  run.state.phase_ended = 1;
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(Saved(5), 2.0);
  // As the test phase that follows, which has the same iteration.
  run.weight.fill_(3.0);
  run.state.phase_index = 1;
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(Saved(5), 2.0);
}

TEST_F(CheckpointerTest, SaveAtTheEndOfAPhase_StaysBehindTheNextPhase) {
  FakeRun run;
  run.state.iteration = 5;
  run.state.phase_index = 0;
  run.state.phase_ended = 1;
  const std::unique_ptr<Checkpointer> checkpointer = Make(PosixFileSystem(), run);
  ASSERT_OK(checkpointer->Save());
  run.weight.fill_(2.0);
  run.state.phase_index = 1;
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(Saved(5), 1.0);
}

TEST_F(CheckpointerTest, Error_SurfacesOnceAtTheNextCall) {
  FaultFileSystem files(PosixFileSystem(), MakeTempDir("full"));
  FakeRun run;
  run.state.iteration = 5;
  const std::unique_ptr<Checkpointer> checkpointer = Make(files, run);
  files.FailCall(files.calls() + 3, ENOSPC, FaultFileSystem::Repeat::kFromThenOn);
  ASSERT_OK(checkpointer->Save());
  EXPECT_THAT(checkpointer->Wait(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("step_5 not saved")));
  EXPECT_EQ(checkpointer->last_saved(), -1);
  EXPECT_OK(checkpointer->Wait());
  files.StopFailing();
  // The same state can be asked for again after a failure.
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(checkpointer->last_saved(), 5);
}

TEST_F(CheckpointerTest, Poll_ReportsWhatHasEnded) {
  FaultFileSystem files(PosixFileSystem(), MakeTempDir("full"));
  FakeRun run;
  run.state.iteration = 5;
  const std::unique_ptr<Checkpointer> checkpointer = Make(files, run);
  files.FailCall(files.calls() + 1, EIO, FaultFileSystem::Repeat::kFromThenOn);
  ASSERT_OK(checkpointer->Save());
  absl::Status polled;
  while (polled.ok()) polled = checkpointer->Poll();
  EXPECT_THAT(polled, StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(CheckpointerTest, DestroyedWhileWriting_LeavesTheCheckpoint) {
  FakeRun run;
  run.state.iteration = 5;
  ASSERT_OK(Make(PosixFileSystem(), run)->Save());
  EXPECT_EQ(Saved(5), 1.0);
}

TEST_F(CheckpointerTest, StateThatIsNotFinite_IsNotSaved) {
  for (const bool in_background : {false, true}) {
    FakeRun run;
    run.state.iteration = 5;
    const std::unique_ptr<Checkpointer> checkpointer = Make(PosixFileSystem(), run, in_background);
    run.loss.fill_(std::nan(""));
    ASSERT_OK(checkpointer->Save());
    ASSERT_OK(checkpointer->Wait());
    run.state.iteration = 6;
    run.momentum[1][2].fill_(std::nan(""));
    EXPECT_THAT(checkpointer->Save(),
                StatusIs(absl::StatusCode::kOutOfRange,
                         AllOf(HasSubstr("optimizer/momentum (1 of 12 values)"), HasSubstr("at iteration 6"),
                               HasSubstr("the newest checkpoint: "), HasSubstr("step_5"))));
    EXPECT_THAT(*PosixFileSystem().List(directory_), ElementsAre("LATEST", "step_5"));
  }
}

TEST_F(CheckpointerTest, CheckpointThatIsNotFinite_IsNotRestored) {
  FakeRun run;
  run.state.iteration = 5;
  CheckpointStore store({directory_, 0, ""}, PosixFileSystem(), *communicator_);
  run.weight.fill_(std::nan(""));
  FakeRun other;
  ASSERT_OK(store.Save(5, {{"model.safetensors", {{"weight", run.weight}}},
                           {"optimizer.safetensors", {{"momentum", run.momentum}}},
                           {"state_rank0.safetensors",
                            {{"phase_loss", run.loss},
                             {"train_state/phase_index", at::full({}, 0, at::kLong)},
                             {"train_state/train_phase_index", at::full({}, 0, at::kLong)},
                             {"train_state/iteration", at::full({}, 5, at::kLong)},
                             {"train_state/batch_in_phase", at::full({}, 5, at::kLong)},
                             {"train_state/phase_ended", at::full({}, 0, at::kLong)},
                             {"train_state/num_updates", at::full({}, 20, at::kLong)}}}}));
  EXPECT_THAT(Make(PosixFileSystem(), other)->Restore(5),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("model/weight (12 of 12 values)"), HasSubstr("RESUME_FROM=STEP"))));
  EXPECT_EQ(other.weight[0][0].item<double>(), 1.0);
}

TEST_F(CheckpointerTest, CheckpointBehindTheEnd_IsRefused) {
  FakeRun run;
  run.state.iteration = 5;
  ASSERT_OK(Make(PosixFileSystem(), run)->Save());
  FakeRun shorter;
  shorter.state.max_iterations = 4;
  EXPECT_THAT(
      Make(PosixFileSystem(), shorter)->Restore(5),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lies behind the end of this run: iteration 5 of 4")));
  EXPECT_EQ(shorter.state.iteration, 0);
}

// Also when the last step was saved before, as a step that the run went on from.
TEST_F(CheckpointerTest, Replaceable_GoesUnlessItIsAskedForOnceMore_AlsoAfterARestart) {
  for (const int64_t last : {7, 9}) {
    FakeRun run;
    const std::unique_ptr<Checkpointer> checkpointer = Make(PosixFileSystem(), run);
    const absl::Status restored = last == 9 ? checkpointer->Restore(7) : absl::OkStatus();
    ASSERT_OK(restored);
    for (run.state.iteration = last - 2; run.state.iteration <= last; ++run.state.iteration) {
      ASSERT_OK(checkpointer->SaveAs("rolling", /*replaceable=*/true));
      const absl::Status asked_again = run.state.iteration == 6 ? checkpointer->Save() : absl::OkStatus();
      ASSERT_OK(asked_again);
    }
  }
  CheckpointStore store({directory_, 0, ""}, PosixFileSystem(), *communicator_);
  EXPECT_THAT(*store.Iterations(), ElementsAre(6, 9));
}

TEST_F(CheckpointerTest, EndOfTheLastPhase_IsMarked) {
  FakeRun run;
  run.state.iteration = 9;
  run.state.phase_index = 1;
  run.state.phase_ended = 0;
  const std::unique_ptr<Checkpointer> checkpointer = Make(PosixFileSystem(), run);
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_THAT(*PosixFileSystem().List(directory_), ElementsAre("LATEST", "step_9"));
  run.state.phase_ended = 1;
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_THAT(*PosixFileSystem().List(directory_), ElementsAre("FINISHED", "LATEST", "step_9"));
  EXPECT_EQ(*PosixFileSystem().Read(directory_ + "/FINISHED"), "step_9\n");
}

// What an evaluation makes of the directory.
TEST_F(CheckpointerTest, RestoreModel_ReadsTheModelAlone) {
  struct FakeModel : public Stateful {
    void VisitState(StateVisitor& visitor) override { visitor.Tensor("weight", weight); }
    at::Tensor weight = at::full({3, 4}, 1.0);
  } model;
  const auto restore = [&] { return RestoreModel(directory_, PosixFileSystem(), *communicator_, model); };
  EXPECT_THAT(restore(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no checkpoint")));
  FakeRun run;
  for (run.state.iteration = 5; run.state.iteration <= 6; ++run.state.iteration) {
    run.weight.fill_(run.state.iteration);
    ASSERT_OK(Make(PosixFileSystem(), run, /*in_background=*/false)->Save());
  }
  EXPECT_EQ(restore().value_or(-1), 6);
  EXPECT_TRUE(model.weight.eq(6).all().item<bool>());
  model.weight = at::full({3, 5}, 1.0);
  EXPECT_THAT(restore(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("step_6/model.safetensors"), HasSubstr("weight is Float [3, 4]"))));
}

}  // namespace
}  // namespace ssl
