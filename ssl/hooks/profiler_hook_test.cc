// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profiler_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/trace_events.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

ProfilerOptions Options(int64_t start, int64_t warmup, int64_t count) {
  ProfilerOptions options;
  options.start_iteration = start;
  options.warmup_iterations = warmup;
  options.num_iterations = count;
  return options;
}

// A host's own, with paths of its own: /a is <root>/a of the machine.
class RootedFileSystem : public FaultFileSystem {
 public:
  explicit RootedFileSystem(const std::string& root) : FaultFileSystem(PosixFileSystem(), root), root_(root) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return FaultFileSystem::Create(root_ + path);
  }
  absl::StatusOr<std::string> Read(const std::string& path) override { return FaultFileSystem::Read(root_ + path); }
  bool Exists(const std::string& path) override { return FaultFileSystem::Exists(root_ + path); }
  absl::Status CreateDirectories(const std::string& directory) override {
    return FaultFileSystem::CreateDirectories(root_ + directory);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return FaultFileSystem::Rename(root_ + from, root_ + to);
  }
  absl::Status RemoveFile(const std::string& path) override { return FaultFileSystem::RemoveFile(root_ + path); }
  absl::Status SyncDirectory(const std::string& directory) override {
    return FaultFileSystem::SyncDirectory(root_ + directory);
  }

 private:
  const std::string root_;
};

class ProfilerHookTest : public ::testing::Test {
 protected:
  ProfilerHookTest() { setenv("TMPDIR", temporary_.c_str(), /*replace=*/1); }
  ~ProfilerHookTest() override { unsetenv("TMPDIR"); }

  // Updates from the state's iteration up to `end`.
  void Train(ProfilerHook& hook, FakeStep& step, int64_t end) {
    for (; step.state.iteration < end;) {
      ASSERT_OK(hook.OnBatchStart(step.context));
      at::matmul(at::ones({4, 4}), at::ones({4, 4}));
      ASSERT_OK(hook.OnForward(step.context));
      ASSERT_OK(hook.OnLossAndMeter(step.context));
      ASSERT_OK(hook.OnBackward(step.context));
      ASSERT_OK(hook.OnUpdate(step.context));
      ++step.state.iteration;
      ASSERT_OK(hook.OnStep(step.context));
    }
  }

  // Records one update through `files`.
  absl::Status RecordOne(FileSystem& files, const OutputFolder& folder) {
    ProfilerHook hook(Options(0, 0, 1), files, folder);
    FakeStep step;
    SSL_RETURN_IF_ERROR(hook.OnStart(step.context));
    SSL_RETURN_IF_ERROR(hook.OnBatchStart(step.context));
    ++step.state.iteration;
    return hook.OnStep(step.context);
  }

  static std::vector<std::string> List(const std::string& directory) {
    return PosixFileSystem().List(directory).value_or(std::vector<std::string>());
  }
  std::vector<std::string> Files() { return List(directory_); }

  const std::string root_of_host_ = MakeTempDir("host");
  const std::string temporary_ = MakeTempDir("temporary");

  const std::string directory_ = MakeTempDir("profiler") + "/profile";
};

TEST_F(ProfilerHookTest, Trace_HasTheStepsOfTheRangeAndTheirOperators) {
  ProfilerHook hook(Options(2, 1, 2), PosixFileSystem(), {directory_, ""});
  FakeStep step;
  ASSERT_OK(hook.OnStart(step.context));
  Train(hook, step, 3);
  EXPECT_THAT(Files(), IsEmpty()) << "the warm-up is over, nothing is recorded yet";
  Train(hook, step, 10);
  ASSERT_OK(hook.OnEnd(step.context));

  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_4-5.json"));
  const std::vector<Event> events = ReadTrace(directory_ + "/rank0_iterations_4-5.json");
  EXPECT_THAT(StepsOf(events), ElementsAre("ProfilerStep#4", "ProfilerStep#5"));
  EXPECT_THAT(NamesOf(events), IsSupersetOf({"aten::matmul", "aten::mm", "forward", "loss", "backward", "optimizer"}));
  const Event forward = Find(events, "forward");
  const Event product = Find(events, "aten::matmul");
  const Event first_step = Find(events, "ProfilerStep#4");
  EXPECT_LE(first_step.begin, forward.begin);
  EXPECT_LE(forward.begin, product.begin);
  EXPECT_LE(product.end, forward.end);
  EXPECT_LE(forward.end, first_step.end);
}

TEST_F(ProfilerHookTest, RangePastTheEnd_IsWarnedOf) {
  const auto logged = [this](int64_t start, int64_t updates = 5) {
    CapturedLog log;
    ProfilerHook hook(Options(start, 2, updates), PosixFileSystem(), {directory_, ""});
    FakeStep step;
    step.state.max_iterations = 10;
    EXPECT_OK(hook.OnStart(step.context));
    return log.Text();
  };
  EXPECT_THAT(logged(3), IsEmpty()) << "updates 6 to 10";
  EXPECT_THAT(logged(4), HasSubstr("updates 7 to 11 are to be recorded, of which the run has 4: it ends with 10"));
  EXPECT_THAT(logged(4, std::numeric_limits<int64_t>::max()), HasSubstr("of which the run has 4: it ends with 10"));
  EXPECT_THAT(logged(8), HasSubstr("updates 11 to 15 are to be recorded, of which the run has none: it ends with 10"));
}

TEST_F(ProfilerHookTest, ResumedRun_RecordsWhatIsLeftInAFileOfItsOwn) {
  FakeStep step;
  {
    ProfilerHook hook(Options(0, 0, 5), PosixFileSystem(), {directory_, ""});
    ASSERT_OK(hook.OnStart(step.context));
    Train(hook, step, 2);
    ASSERT_OK(hook.OnEnd(step.context));
  }
  ProfilerHook resumed(Options(0, 0, 5), PosixFileSystem(), {directory_, ""});
  ASSERT_OK(resumed.OnStart(step.context));
  Train(resumed, step, 9);
  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_1-2.json", "rank0_iterations_3-5.json"));
  EXPECT_THAT(StepsOf(ReadTrace(directory_ + "/rank0_iterations_3-5.json")),
              ElementsAre("ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"));

  ProfilerHook past(Options(0, 0, 5), PosixFileSystem(), {directory_, ""});
  ASSERT_OK(past.OnStart(step.context));
  Train(past, step, 12);
  ASSERT_OK(past.OnEnd(step.context));
  EXPECT_EQ(Files().size(), 2u) << "nothing is left of the range";
}

TEST_F(ProfilerHookTest, OtherRanks_RecordNothing) {
  ProfilerOptions options = Options(0, 0, 2);
  options.profiled_ranks = {1};
  options.stop_training_after_profiling = true;
  ProfilerHook hook(options, PosixFileSystem(), {directory_, ""});
  FakeStep step;
  ASSERT_OK(hook.OnStart(step.context));
  Train(hook, step, 1);
  EXPECT_FALSE(step.stop.requested());
  Train(hook, step, 2);
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(step.stop.reason(), kStopTerminate) << "all ranks stop, whoever records";
}

TEST_F(ProfilerHookTest, RecorderOfTheHost_IsLeftAlone) {
  FakeStep step;
  ProfilerHook host(Options(0, 0, 9), PosixFileSystem(), {directory_, ""});
  ASSERT_OK(host.OnStart(step.context));
  Train(host, step, 1);
  CapturedLog log;
  ProfilerHook second(Options(0, 0, 9), PosixFileSystem(), {directory_, ""});
  ASSERT_OK(second.OnStart(step.context));
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("another recorder is on")));
  Train(second, step, 2);
  ASSERT_OK(second.OnEnd(step.context));
  EXPECT_THAT(Files(), IsEmpty());
}

// The host may begin to record at any time: before START_ITERATION, or before the recording.
TEST_F(ProfilerHookTest, RecorderThatTheHostTurnsOnLater_IsLeftAlone) {
  for (const int64_t host_begins : {1, 3}) {
    FakeStep step;
    ProfilerHook hook(Options(2, 2, 2), PosixFileSystem(), {directory_, "hook"});
    ASSERT_OK(hook.OnStart(step.context));
    Train(hook, step, host_begins);
    ProfilerHook host(Options(host_begins, 0, 1), PosixFileSystem(), {directory_, "host"});
    ASSERT_OK(host.OnStart(step.context));
    ASSERT_OK(host.OnBatchStart(step.context));
    CapturedLog log;
    Train(hook, step, 9);
    ASSERT_OK(hook.OnEnd(step.context));
    EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("another recorder is on"))) << host_begins;
    EXPECT_THAT(List(directory_ + "/hook"), IsEmpty());
    ASSERT_OK(host.OnEnd(step.context));
    EXPECT_EQ(List(directory_ + "/host").size(), host_begins == 1 ? 1u : 2u) << "the host's goes on";
  }
}

TEST_F(ProfilerHookTest, RunThatEndsInItsWarmUp_LeavesTheRecorderToOthers) {
  {
    ProfilerHook hook(Options(0, 5, 1), PosixFileSystem(), {directory_, ""});
    FakeStep step;
    ASSERT_OK(hook.OnStart(step.context));
    Train(hook, step, 2);
    ASSERT_OK(hook.OnEnd(step.context));
  }
  ASSERT_OK(RecordOne(PosixFileSystem(), {directory_, ""}));
  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_1-1.json"));
}

// LibTorch has one recorder for each thread, but can prepare only one at a time.
TEST_F(ProfilerHookTest, RecorderOfAnotherThread_DoesNotFailTheRun) {
  FakeStep step;
  ProfilerHook hook(Options(0, 0, 2), PosixFileSystem(), {directory_, ""});
  ASSERT_OK(hook.OnStart(step.context));
  ASSERT_OK(hook.OnBatchStart(step.context));
  std::thread other([this] { EXPECT_OK(RecordOne(PosixFileSystem(), {directory_, "other"})); });
  other.join();
  step.state.iteration = 2;
  EXPECT_OK(hook.OnStep(step.context));
}

TEST_F(ProfilerHookTest, FileSystemOfTheHost_GetsTheTrace) {
  RootedFileSystem files(root_of_host_);
  ASSERT_OK(RecordOne(files, {"/run", "profile"}));
  ASSERT_OK_AND_ASSIGN(const std::string trace, files.Read("/run/profile/rank0_iterations_1-1.json"));
  EXPECT_THAT(trace, HasSubstr("ProfilerStep#1"));
  EXPECT_FALSE(PosixFileSystem().Exists("/run/profile"));
  EXPECT_THAT(List(temporary_), IsEmpty());
}

TEST_F(ProfilerHookTest, EachCallThatFails_IsAnErrorAndLeavesNothingBehind) {
  const std::string root = ParentDirectory(directory_);
  for (int call = 1;; ++call) {
    FaultFileSystem faults(PosixFileSystem(), root);
    faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    const absl::Status saved = RecordOne(faults, {root, absl::StrCat("profile_", call)});
    EXPECT_THAT(List(temporary_), IsEmpty());
    if (faults.failed_calls() == 0) {
      EXPECT_GT(call, 5) << "folder, file, bytes, sync, name";
      break;
    }
    EXPECT_THAT(saved, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(root))) << call;
  }
}

TEST_F(ProfilerHookTest, PlaceForTheTraceThatIsMissing_IsNamed) {
  setenv("TMPDIR", (temporary_ + "/gone").c_str(), /*replace=*/1);
  EXPECT_THAT(RecordOne(PosixFileSystem(), {directory_, ""}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("/gone")));
}

// The way out of a full disk is another place, and no restored file.
TEST_F(ProfilerHookTest, PlaceForTheTraceThatIsFull_IsAnErrorOfStorage) {
  const auto earlier_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit earlier = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &earlier), 0);
  const rlimit small = {100, earlier.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status saved = RecordOne(PosixFileSystem(), {directory_, ""});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &earlier), 0);
  std::signal(SIGXFSZ, earlier_handler);
  EXPECT_THAT(saved, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("TMPDIR names another place")));
  EXPECT_THAT(List(temporary_), IsEmpty());
}

TEST_F(ProfilerHookTest, PlanNamesTheTrace) {
  ProfilerOptions options = Options(3, 1, 2);
  EXPECT_EQ(ProfilerHook(options, PosixFileSystem(), {directory_, ""}).Plan()[0].file,
            "profile/rank*_iterations_5-*.json");
  options.profiled_ranks = {1};
  EXPECT_EQ(ProfilerHook(options, PosixFileSystem(), {directory_, ""}).Plan()[0].file,
            "profile/rank1_iterations_5-*.json");
  options.stop_training_after_profiling = true;
  const std::vector<PlannedAction> plan = ProfilerHook(options, PosixFileSystem(), {directory_, ""}).Plan();
  ASSERT_THAT(plan, SizeIs(2));
  EXPECT_EQ(plan[1].what, "stops the run, which saves itself");
  EXPECT_THAT(plan[1].when.DueIn(1, 100, 100), ElementsAre(6)) << "5 and 6 are recorded";
}

TEST_F(ProfilerHookTest, LinkBesideTheTrace_IsNotWrittenThrough) {
  ASSERT_OK(PosixFileSystem().CreateDirectories(directory_));
  const std::string victim = temporary_ + "_victim";
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), victim, "precious"));
  const std::string trace = directory_ + "/rank0_iterations_1-1.json";
  for (const std::string& planted :
       {trace, absl::StrCat(trace, ".tmp-", getpid()), absl::StrCat(trace, ".tmp-", getpid(), ".json"),
        absl::StrCat(trace, ".tmp-", getpid(), ".json.tmp")}) {
    std::filesystem::create_symlink(victim, planted);
  }
  ASSERT_OK(RecordOne(PosixFileSystem(), {directory_, ""}));
  EXPECT_EQ(PosixFileSystem().Read(victim).value(), "precious");
  EXPECT_THAT(StepsOf(ReadTrace(trace)), ElementsAre("ProfilerStep#1"));
}

TEST_F(ProfilerHookTest, PlaceThatCannotBeWritten_IsAnError) {
  ASSERT_OK(PosixFileSystem().Create(directory_));  // a file, where the folder should be
  ProfilerHook hook(Options(0, 0, 5), PosixFileSystem(), {directory_, ""});
  FakeStep step;
  ASSERT_OK(hook.OnStart(step.context));
  Train(hook, step, 1);
  EXPECT_THAT(hook.OnEnd(step.context).message(), HasSubstr(directory_));
}

TEST_F(ProfilerHookTest, ErrorOfOneRank_IsThatOfBoth) {
  ASSERT_OK(PosixFileSystem().Create(directory_));  // a file, where the folder should be
  for (const bool at_end_of_run : {false, true}) {
    std::vector<absl::Status> statuses(2);
    ThreadWorld world(2, absl::Seconds(30));
    ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
      ProfilerOptions options = Options(0, 0, 1);
      options.profiled_ranks = {1};
      ProfilerHook hook(options, PosixFileSystem(), {directory_, ""});
      FakeStep step(communicator);
      absl::Status status = hook.OnStart(step.context);
      status.Update(hook.OnBatchStart(step.context));
      ++step.state.iteration;
      statuses[communicator.rank()] = at_end_of_run ? hook.OnEnd(step.context) : hook.OnStep(step.context);
      return status;
    }));
    EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("failed on rank ")));
    EXPECT_THAT(statuses[1].message(), HasSubstr(directory_));
  }
}

// The other ranks may be gone, so that nobody waits for them.
TEST_F(ProfilerHookTest, AfterAnErrorOfTheRun_ARankSavesAlone) {
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    ProfilerOptions options = Options(0, 0, 9);
    options.profiled_ranks = {0};
    ProfilerHook hook(options, PosixFileSystem(), {directory_, ""});
    FakeStep step(communicator);
    absl::Status status = hook.OnStart(step.context);
    if (communicator.rank() == 1) return status;
    status.Update(hook.OnBatchStart(step.context));
    status.Update(hook.OnException(step.context, absl::InternalError("lost")));
    status.Update(hook.OnEnd(step.context));
    return status;
  }));
  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_1-1.json"));
}

}  // namespace
}  // namespace ssl
