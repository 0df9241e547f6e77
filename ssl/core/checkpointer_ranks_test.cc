// SPDX-License-Identifier: Apache-2.0
//
// Checkpointers of several ranks.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/testing/fake_run.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/io/safetensors.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointerRanksTest : public ::testing::Test {
 protected:
  const std::string directory_ = MakeTempDir("checkpointer_ranks") + "/checkpoints";
};

TEST_F(CheckpointerRanksTest, TwoRanks_SaveInTheBackgroundWhileTheyReduce) {
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

TEST_F(CheckpointerRanksTest, TwoRanks_ComeBackToTheirOwn_AndShareWhatTheyHaveAlike) {
  for (const bool in_background : {false, true}) {
    std::vector<double> restored(2);
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
      FakeRun run;
      run.state.iteration = in_background ? 6 : 5;
      run.momentum.fill_(7.0);
      run.weight[1][2].fill_(static_cast<double>(communicator.rank()));  // as running statistics are
      CheckpointerOptions options;
      options.store.directory = directory_;
      options.num_phases = 2;
      options.in_background = in_background;
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                           Checkpointer::Make(options, PosixFileSystem(), communicator, run, run.state));
      SSL_RETURN_IF_ERROR(checkpointer->Open());
      SSL_RETURN_IF_ERROR(checkpointer->Save());
      SSL_RETURN_IF_ERROR(checkpointer->Wait());
      run.weight.fill_(-1.0);
      run.momentum.fill_(-1.0);
      SSL_RETURN_IF_ERROR(checkpointer->Restore(run.state.iteration));
      EXPECT_EQ(run.momentum[0][0].item<double>(), 7.0);
      restored[communicator.rank()] = run.weight[1][2].item<double>();
      return absl::OkStatus();
    }));
    EXPECT_THAT(restored, ElementsAre(0.0, 1.0));
    const auto own =
        ReadSafetensors(absl::StrCat(directory_, "/step_", in_background ? 6 : 5, "/state_rank1.safetensors"));
    ASSERT_OK(own);
    ASSERT_EQ(own->tensors.size(), 1);
    EXPECT_EQ(own->tensors[0].name, "model/weight");
  }
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
TEST_F(CheckpointerRanksTest, RankWithoutAThread_KeepsTheOthersFromWriting) {
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

// Passes everything on. Duplicates of one that fails have no memory for the first broadcasts.
class ScarceCommunicator : public Communicator {
 public:
  ScarceCommunicator(Communicator& base, int failures) : base_(base), failures_(failures) {}

  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override { return base_.AllReduce(tensor, op); }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return base_.AllGather(tensor); }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    if (owned_ != nullptr && failures_-- > 0) throw std::bad_alloc();
    return base_.Broadcast(tensor, root);
  }
  absl::Status Barrier() override { return base_.Barrier(); }
  void LetOthersGoOn(absl::FunctionRef<void()> wait) override { base_.LetOthersGoOn(wait); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> duplicate, base_.Duplicate());
    auto scarce = std::make_unique<ScarceCommunicator>(*duplicate, failures_);
    scarce->owned_ = std::move(duplicate);
    return scarce;
  }
  void Abort(const absl::Status& why) override { base_.Abort(why); }

 private:
  std::unique_ptr<Communicator> owned_;
  Communicator& base_;
  int failures_;
};

CheckpointerOptions InBackground(const std::string& directory) {
  CheckpointerOptions options;
  options.store.directory = directory;
  options.num_phases = 2;
  options.in_background = true;
  return options;
}

// Rank 0's process lives on, and trains beside the thread that has failed.
absl::Status BreakOffOnRankZero(const std::string& directory, Communicator& base) {
  const bool fails = base.rank() == 0;
  ScarceCommunicator communicator(base, fails ? 1 : 0);
  FakeRun run;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                       Checkpointer::Make(InBackground(directory), PosixFileSystem(), communicator, run, run.state));
  SSL_RETURN_IF_ERROR(checkpointer->Open());
  // Of the second one there is nobody to save with.
  for (int save = 0; save < 2; ++save) {
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    const absl::Status status = checkpointer->Wait();
    if (fails) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("out of memory")));
      EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, Not(HasSubstr("did not finish within"))));
    }
    SSL_RETURN_IF_ERROR(base.Barrier());
  }
  return absl::OkStatus();
}

TEST_F(CheckpointerRanksTest, ARankThatBreaksOffBetweenOperations_EndsTheSaveOfAll) {
  EXPECT_OK(ProcessWorld(2, absl::Seconds(10)).Run([&](Communicator& communicator) {
    return BreakOffOnRankZero(directory_, communicator);
  }));
}

// Without a timeout: the ranks of a process would wait for each other for ever.
TEST_F(CheckpointerRanksTest, AVirtualRankThatBreaksOffBetweenOperations_EndsTheSaveOfAll) {
  EXPECT_OK(VirtualWorld(2, *MakeLocalCommunicator()).Run([&](Communicator& communicator) {
    return BreakOffOnRankZero(directory_, communicator);
  }));
}

TEST_F(CheckpointerRanksTest, AVirtualRankThatBreaksOff_EndsTheSaveOfOtherProcesses) {
  EXPECT_OK(ProcessWorld(2, absl::Seconds(10)).Run([&](Communicator& processes) {
    return VirtualWorld(4, processes).Run([&](Communicator& communicator) {
      return BreakOffOnRankZero(directory_, communicator);
    });
  }));
}

TEST_F(CheckpointerRanksTest, ARankAlone_SavesAgainWhenThereIsMemory) {
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  ScarceCommunicator communicator(*alone, /*failures=*/1);
  FakeRun run;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Checkpointer> checkpointer,
                       Checkpointer::Make(InBackground(directory_), PosixFileSystem(), communicator, run, run.state));
  ASSERT_OK(checkpointer->Open());
  ASSERT_OK(checkpointer->Save());
  EXPECT_THAT(checkpointer->Wait(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("out of memory")));
  ASSERT_OK(checkpointer->Save());
  ASSERT_OK(checkpointer->Wait());
  EXPECT_EQ(checkpointer->last_saved(), run.state.iteration);
  EXPECT_OK(checkpointer->Restore(run.state.iteration));
}

// The error of one rank's disk ends the run on all ranks at the same step.
TEST_F(CheckpointerRanksTest, TwoRanks_LearnOfAFailureAtTheSameStep) {
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
