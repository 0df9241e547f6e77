// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpointer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a run consists of, as far as saving goes.
struct FakeRun : public Stateful {
  FakeRun() { state.max_iterations = 100; }
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("model/weight", weight);
    visitor.Tensor("optimizer/momentum", momentum);
    visitor.Tensor("phase_loss", loss);
    visitor.MayBeNonFinite("phase_loss");
    visitor.Scope("train_state", state);
  }
  at::Tensor weight = at::full({3, 4}, 1.0);
  at::Tensor momentum = at::full({3, 4}, 0.5);
  at::Tensor loss = at::full({}, 0.0);
  TrainState state;
};

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

TEST_F(CheckpointerTest, TwoRanks_SaveInTheBackgroundWhileTheyReduce) {
  std::vector<int64_t> restored(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    FakeRun run;
    CheckpointerOptions options;
    options.store.directory = directory_;
    options.num_phases = 2;
    options.in_background = true;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(options, PosixFileSystem(), communicator, run, run.state));
    SSL_RETURN_IF_ERROR(checkpointer->Open());
    for (run.state.iteration = 1; run.state.iteration <= 20; ++run.state.iteration) {
      run.weight.fill_(run.state.iteration);
      at::Tensor one = at::full({1}, 1.0);
      SSL_RETURN_IF_ERROR(communicator.AllReduce(one, ReduceOp::kSum));
      EXPECT_EQ(one.item<double>(), 2.0);
      if (run.state.iteration % 5 == 0) SSL_RETURN_IF_ERROR(checkpointer->Save());
      SSL_RETURN_IF_ERROR(checkpointer->Poll());
    }
    SSL_RETURN_IF_ERROR(checkpointer->Wait());
    SSL_RETURN_IF_ERROR(checkpointer->Restore(15));
    restored[communicator.rank()] = run.weight[0][0].item<int64_t>();
    return absl::OkStatus();
  }));
  EXPECT_THAT(restored, ElementsAre(15, 15));
}

// Counts the collective operations, those of its duplicates apart, and tells of each that has ended or begins.
class WatchedCommunicator : public Communicator {
 public:
  using Watcher = std::function<void(int call)>;
  WatchedCommunicator(Communicator& base, std::atomic<int>* of_duplicates, Watcher before, Watcher after)
      : base_(base), of_duplicates_(of_duplicates), before_(std::move(before)), after_(std::move(after)) {}

  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    before_(++calls_);
    const absl::Status status = base_.AllReduce(tensor, op);
    after_(calls_);
    return status;
  }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return base_.AllGather(tensor); }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override { return base_.Broadcast(tensor, root); }
  absl::Status Barrier() override { return base_.Barrier(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    SSL_ASSIGN_OR_RETURN(duplicate_, base_.Duplicate());
    const Watcher count = [this](int) { ++*of_duplicates_; };
    return std::make_unique<WatchedCommunicator>(*duplicate_, nullptr, count, [](int) {});
  }
  void Restart() { calls_ = 0; }

 private:
  Communicator& base_;
  std::unique_ptr<Communicator> duplicate_;
  std::atomic<int>* const of_duplicates_;
  const Watcher before_;
  const Watcher after_;
  int calls_ = 0;
};

// Of threads that are made from now on. More than there is of addresses: none can be made.
void SetStackSize(size_t bytes) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_default_np(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
}

// The other rank has a thread by then. It must not begin: it would wait for this rank in its first operation.
TEST_F(CheckpointerTest, RankWithoutAThread_KeepsTheOthersFromWriting) {
  constexpr size_t kUsual = size_t{8} << 20;
  constexpr size_t kTooLarge = size_t{1} << 47;
  std::vector<absl::Status> saved(2);
  std::atomic<int> begun{0};
  absl::Notification has_no_thread;
  ASSERT_OK(ThreadWorld(2, absl::Seconds(10)).Run([&](Communicator& base) -> absl::Status {
    const bool fails = base.rank() == 1;
    // Operation 1: the state is collected; 2: the threads are there.
    const auto before = [&, fails](int call) {
      if (!fails || call != 2 || has_no_thread.HasBeenNotified()) return;
      SetStackSize(kUsual);
      has_no_thread.Notify();
    };
    const auto after = [&, fails](int call) {
      if (!fails && call == 1) has_no_thread.WaitForNotification();
    };
    WatchedCommunicator communicator(base, &begun, before, after);
    FakeRun run;
    CheckpointerOptions options;
    options.store.directory = directory_;
    options.in_background = true;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(options, PosixFileSystem(), communicator, run, run.state));
    SSL_RETURN_IF_ERROR(checkpointer->Open());
    SSL_RETURN_IF_ERROR(base.Barrier());
    begun = 0;
    communicator.Restart();
    if (fails) SetStackSize(kTooLarge);
    saved[base.rank()] = checkpointer->Save();
    checkpointer->LetEnd();
    EXPECT_EQ(begun, 0);
    SSL_RETURN_IF_ERROR(base.Barrier());
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    return checkpointer->Wait();
  }));
  EXPECT_THAT(saved[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("starting to write a checkpoint failed on")));
  EXPECT_THAT(saved[1], StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no thread")));
}

// The error of one rank's disk ends the run on all ranks at the same step.
TEST_F(CheckpointerTest, TwoRanks_LearnOfAFailureAtTheSameStep) {
  FaultFileSystem faulty(PosixFileSystem(), MakeTempDir("full"));
  faulty.FailCall(1, EIO, FaultFileSystem::Repeat::kFromThenOn);
  std::vector<int64_t> failed_at(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    FileSystem& files = communicator.rank() == 1 ? static_cast<FileSystem&>(faulty) : PosixFileSystem();
    FakeRun run;
    CheckpointerOptions options;
    options.store.directory = directory_;
    options.in_background = true;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(options, files, communicator, run, run.state));
    SSL_RETURN_IF_ERROR(checkpointer->Open());
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    int64_t step = 0;
    while (checkpointer->Poll().ok()) ++step;
    failed_at[communicator.rank()] = step;
    return absl::OkStatus();
  }));
  EXPECT_EQ(failed_at[0], failed_at[1]);
  EXPECT_TRUE(PosixFileSystem().List(directory_)->empty());
}

}  // namespace
}  // namespace ssl
