// SPDX-License-Identifier: Apache-2.0
//
// A session's calls in any order, and what it saves and when.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kTotalSteps = 20;

uint32_t UninterruptedHash() {
  std::unique_ptr<Session> session = *MakeSession(FakeConfig(""));
  EXPECT_OK(session->Train());
  return *HashState(session->model());
}

// Trains what the run directory holds to its end, which must give the undisturbed result.
void ExpectResumesAt(const ConfigNode& config, int64_t iteration) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> next, MakeSession(config));
  ASSERT_OK(next->Start());
  EXPECT_EQ(next->state().iteration, iteration);
  ASSERT_OK(next->Train());
  EXPECT_EQ(*HashState(next->model()), UninterruptedHash());
}

TEST(SaveTest, WithinAStep_IsRefused) {
  for (const std::string event : {"OnForward", "OnLossAndMeter", "OnBackward", "OnUpdate"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(MakeTempDir("within"))));
    std::vector<std::string> events;
    auto saving = std::make_unique<RecordingHook>("saving", HookStage::kPersist, &events);
    saving->At(event, [](StepContext& context) { return context.checkpoints->Save(); });
    ASSERT_OK(session->AddHook(std::move(saving)));
    EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a step is under way")))
        << event;
  }
}

// Counts the ends of phases, after the hooks that ask for a save there.
class LateCounter : public Hook {
 public:
  absl::string_view name() const override { return "late_counter"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnPhaseEnd(StepContext&) override {
    ++count;
    return absl::OkStatus();
  }
  void VisitState(StateVisitor& visitor) override { visitor.Int("count", count); }

  int64_t count = 0;
};

TEST(SaveTest, AskedForInAnEvent_HoldsWhatAllItsHandlersHaveNoted) {
  const ConfigNode config = FakeConfig(MakeTempDir("asked"));
  int64_t restored = -1;
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    std::vector<std::string> events;
    auto saving = std::make_unique<RecordingHook>("saving", HookStage::kPersist, &events);
    saving->At("OnPhaseEnd", [](StepContext& context) { return context.checkpoints->SaveAs("end", false); });
    ASSERT_OK(session->AddHook(std::move(saving)));
    auto counter = std::make_unique<LateCounter>();
    const LateCounter& late = *counter;
    ASSERT_OK(session->AddHook(std::move(counter)));
    ASSERT_OK(session->Start());
    restored = late.count;
    for (int i = 0; run == 0 && i < 11; ++i) ASSERT_OK(session->Step());  // killed after the first epoch
  }
  EXPECT_EQ(restored, 1);
}

TEST(SaveTest, AtTheEnd_IsOneSaveOfWhatIsNew) {
  const ConfigNode config = FakeConfig(MakeTempDir("end"));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    for (int i = 0; i < 3; ++i) ASSERT_OK(session->Step());
    EXPECT_EQ(session->progress().last_checkpoint, -1);
    ASSERT_OK(session->Finish());
    EXPECT_EQ(session->progress().last_checkpoint, 3);
  }
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> idle, MakeSession(config));
    ASSERT_OK(idle->Start());
    ASSERT_OK(idle->Finish());
    EXPECT_EQ(idle->progress().last_checkpoint, 3);
  }
  ExpectResumesAt(config, 3);
}

// A run directory with a checkpoint that a session whose hook has more state cannot take.
class FailedStartTest : public ::testing::Test {
 protected:
  class CountingHook : public Hook {
   public:
    explicit CountingHook(bool has_total) : has_total_(has_total) {}
    absl::string_view name() const override { return "counter"; }
    HookStage stage() const override { return HookStage::kObserve; }
    void VisitState(StateVisitor& visitor) override {
      visitor.Int("count", count_);
      if (has_total_) visitor.Int("total", total_);
    }

   private:
    const bool has_total_;
    int64_t count_ = 0;
    int64_t total_ = 0;
  };

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> first, MakeSession(config_));
    ASSERT_OK(first->AddHook(std::make_unique<CountingHook>(/*has_total=*/false)));
    for (int i = 0; i < 3; ++i) ASSERT_OK(first->Step());
    ASSERT_OK(first->Finish());
  }

  const ConfigNode config_ = FakeConfig(MakeTempDir("failed_start"));
};

TEST_F(FailedStartTest, NothingIsTrainedUnrestored) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config_));
    ASSERT_OK(session->AddHook(std::make_unique<CountingHook>(/*has_total=*/true)));
    const uint32_t before = *HashState(session->model());
    const absl::Status first = session->Start();
    EXPECT_THAT(first, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hooks/counter/total is missing")));
    EXPECT_EQ(session->Step().status(), first);
    EXPECT_EQ(session->Train().status(), first);
    EXPECT_EQ(session->Finish(), first);
    EXPECT_EQ(*HashState(session->model()), before);
    EXPECT_EQ(session->state().iteration, 0);
    EXPECT_EQ(session->progress().phase, "starting");
  }
  ExpectResumesAt(config_, 3);
}

// Asks the run to end at the end of its first phase, and at each start after that.
std::unique_ptr<Hook> MakeEndingHook(std::vector<std::string>* events, int reason = kStopUser) {
  auto hook = std::make_unique<RecordingHook>("ending", HookStage::kObserve, events);
  hook->At("OnPhaseEnd", [reason](StepContext& context) {
    context.stop.Request(reason);
    return absl::OkStatus();
  });
  return hook;
}

TEST(EarlyEndTest, IsAFinishedRun_AtTheEndOfThePhase) {
  const std::string directory = MakeTempDir("early");
  std::vector<std::string> events;
  StopToken stop;
  for (int start = 0; start < 2; ++start) {
    SessionOptions options;
    options.stop = &stop;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                         MakeSession(FakeConfig(directory), std::move(options)));
    std::unique_ptr<Hook> hook = MakeEndingHook(&events);
    if (start > 0) {
      static_cast<RecordingHook&>(*hook).At("OnStart", [](StepContext& context) {
        context.RequestStop("nothing is left to learn");
        context.RequestStop("a later reason");
        return absl::OkStatus();
      });
    }
    ASSERT_OK(session->AddHook(std::move(hook)));
    ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
    EXPECT_EQ(outcome, TrainOutcome::kFinished);
    EXPECT_EQ(session->state().iteration, kTotalSteps / 2);
    EXPECT_EQ(session->progress().phase, "finished");
    EXPECT_EQ(session->progress().last_checkpoint, kTotalSteps / 2);
    EXPECT_FALSE(stop.requested()) << "the host's token is not the run's";
    const std::string why = start == 0 ? "a hook has asked for it" : "nothing is left to learn";
    EXPECT_EQ(session->end_reason(), why);
    EXPECT_EQ(*PosixFileSystem().Read(directory + "/checkpoints/FINISHED"), absl::StrCat("step_10\n", why, "\n"));
  }
  EXPECT_THAT(events, Contains("ending.OnEnd@10").Times(2));
}

TEST(EarlyEndTest, BeforeTheFirstStep_IsSavedAndMarked) {
  const std::string directory = MakeTempDir("early_start");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(directory)));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("ending", HookStage::kObserve, &events);
  hook->At("OnStart", [](StepContext& context) {
    context.stop.Request(kStopUser);
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));
  ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
  EXPECT_EQ(outcome, TrainOutcome::kFinished);
  EXPECT_EQ(*PosixFileSystem().Read(directory + "/checkpoints/FINISHED"), "step_0\na hook has asked for it\n");
}

TEST(EarlyEndTest, OtherReasonsOfAHook_AndTheHostsOwn_Interrupt) {
  for (const bool by_hook : {true, false}) {
    const ConfigNode config = FakeConfig(MakeTempDir("interrupted"));
    {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
      std::vector<std::string> events;
      ASSERT_OK(session->AddHook(MakeEndingHook(&events, by_hook ? kStopTerminate : kStopUser)));
      ASSERT_OK(session->Step());
      if (!by_hook) session->RequestStop(kStopUser);
      ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
      EXPECT_EQ(outcome, TrainOutcome::kStopped);
    }
    ExpectResumesAt(config, by_hook ? kTotalSteps / 2 : 1);
  }
}

TEST(EarlyEndTest, RankThatDecides_EndsAll) {
  std::vector<int64_t> ended_at(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(FakeConfig(""), std::move(options)));
    std::vector<std::string> events;
    if (communicator.rank() == 1) SSL_RETURN_IF_ERROR(session->AddHook(MakeEndingHook(&events)));
    SSL_ASSIGN_OR_RETURN(const TrainOutcome outcome, session->Train());
    EXPECT_EQ(outcome, TrainOutcome::kFinished);
    ended_at[communicator.rank()] = session->state().iteration;
    EXPECT_EQ(session->end_reason(),
              communicator.rank() == 1 ? "a hook has asked for it" : "a hook of another rank has asked for it");
    return absl::OkStatus();
  }));
  EXPECT_THAT(ended_at, ElementsAre(5, 5)) << "the end of an epoch of 40 samples, 4 a batch, over two ranks";
}

// As an evaluation does that gives way to a signal.
TEST(InterruptedPhaseEndTest, IsToldAnewWhenTheRunGoesOn) {
  for (const int64_t at : {kTotalSteps / 2, kTotalSteps}) {
    const ConfigNode config = FakeConfig(MakeTempDir("phase_end"));
    std::vector<std::string> events;
    for (const bool is_first : {true, false}) {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
      auto measuring = std::make_unique<RecordingHook>("measuring", HookStage::kObserve, &events);
      measuring->At("OnPhaseEnd", [&](StepContext& context) {
        if (!is_first || context.state.iteration != at) return absl::OkStatus();
        session->RequestStop(kStopTerminate);
        return absl::CancelledError("measuring: stopped");
      });
      ASSERT_OK(session->AddHook(std::move(measuring)));
      ASSERT_OK(session->AddHook(std::make_unique<RecordingHook>("telling", HookStage::kReport, &events)));
      ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
      EXPECT_EQ(outcome, is_first ? TrainOutcome::kStopped : TrainOutcome::kFinished);
      EXPECT_EQ(session->progress().phase, is_first ? "stopped" : "finished");
      EXPECT_EQ(session->progress().failing_hook, "");
      if (!is_first) {
        EXPECT_EQ(*HashState(session->model()), UninterruptedHash());
      }
    }
    EXPECT_THAT(events, Contains(absl::StrCat("measuring.OnPhaseEnd@", at)).Times(2));
    EXPECT_THAT(events, Contains(absl::StrCat("telling.OnPhaseEnd@", at)).Times(1));
    EXPECT_THAT(events, Contains(HasSubstr("OnException")).Times(0));
  }
}

TEST(InterruptedPhaseEndTest, WithoutAStop_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("measuring", HookStage::kObserve, &events);
  hook->At("OnPhaseEnd", [](StepContext&) { return absl::CancelledError("nobody has asked"); });
  ASSERT_OK(session->AddHook(std::move(hook)));
  EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("nobody has asked")));
  EXPECT_EQ(session->progress().failing_hook, "measuring");
}

TEST(SnapshotTest, IsSavedBetweenTwoStepsAndChangesNothing) {
  ConfigNode config = FakeConfig(MakeTempDir("snapshot"));
  config.SetPath("CHECKPOINT.KEEP_LAST", ConfigNode::FromInt(0));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    session->RequestSnapshot();  // there is nothing to save yet
    for (int i = 0; i < 3; ++i) ASSERT_OK(session->Step());
    session->RequestSnapshot();
    session->RequestSnapshot();
    ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
    EXPECT_EQ(outcome, TrainOutcome::kFinished);
    EXPECT_EQ(*HashState(session->model()), UninterruptedHash());
  }
  const std::string checkpoints = config.FindPath("CHECKPOINT.DIR")->text() + "/checkpoints";
  EXPECT_THAT(*PosixFileSystem().List(checkpoints), ElementsAre("FINISHED", "LATEST", "step_20", "step_3"));
  config.SetPath("CHECKPOINT.RESUME_FROM", ConfigNode::FromInt(3));
  ExpectResumesAt(config, 3);
}

TEST(SnapshotTest, SessionsThatShareAToken_AllSave) {
  StopToken stop;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 2; ++i) {
    SessionOptions options;
    options.stop = &stop;
    ASSERT_OK_AND_ASSIGN(sessions.emplace_back(),
                         MakeSession(FakeConfig(MakeTempDir(absl::StrCat("sharing", i))), std::move(options)));
    ASSERT_OK(sessions.back()->Step());
  }
  stop.RequestSnapshot();
  for (const auto& session : sessions) {
    ASSERT_OK(session->Step());
    ASSERT_OK(session->Finish());
    const std::string checkpoints = session->config().FindPath("CHECKPOINT.DIR")->text() + "/checkpoints";
    EXPECT_TRUE(PosixFileSystem().Exists(checkpoints + "/step_1"));
  }
}

TEST(SnapshotTest, OfARunWithoutFiles_DoesNothing) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  ASSERT_OK(session->Step());
  session->RequestSnapshot();
  EXPECT_OK(session->Train());
}

TEST(SnapshotTest, RankThatIsAsked_MakesAllSaveAtOneStep) {
  ConfigNode config = FakeConfig(MakeTempDir("snapshot_ranks"));
  config.SetPath("CHECKPOINT.KEEP_LAST", ConfigNode::FromInt(0));
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
    for (int i = 0; i < 4; ++i) SSL_RETURN_IF_ERROR(session->Step().status());
    if (communicator.rank() == 1) session->RequestSnapshot();
    return session->Train().status();
  }));
  const std::string checkpoints = config.FindPath("CHECKPOINT.DIR")->text() + "/checkpoints";
  EXPECT_THAT(*PosixFileSystem().List(checkpoints), ElementsAre("FINISHED", "LATEST", "step_10", "step_4"));
  EXPECT_THAT(*PosixFileSystem().List(checkpoints + "/step_4"), Contains("state_rank1.safetensors"));
}

TEST(OrderOfCallsTest, FinishBeforeStart_DoesNothing) {
  const ConfigNode config = FakeConfig(MakeTempDir("unstarted"));
  std::vector<std::string> events;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
    ASSERT_OK(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kObserve, &events)));
    ASSERT_OK(session->Finish());
    ASSERT_OK(session->Finish());
    EXPECT_THAT(session->Step(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has ended")));
  }
  EXPECT_THAT(events, IsEmpty());
  ExpectResumesAt(config, 0);
}

TEST(OrderOfCallsTest, AfterTheEnd_EveryCallSaysSo) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  ASSERT_OK(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kObserve, &events)));
  ASSERT_OK(session->Step());
  ASSERT_OK(session->Finish());
  const std::vector<std::string> before = events;
  const auto ended = StatusIs(absl::StatusCode::kFailedPrecondition,
                              "this session has ended, at iteration 1 of 20; a new one goes on");
  EXPECT_THAT(session->Start(), ended);
  EXPECT_THAT(session->Step(), ended);
  EXPECT_THAT(session->Train(), ended);
  EXPECT_OK(session->Finish());
  EXPECT_EQ(events, before);
}

TEST(OrderOfCallsTest, HookAfterTheStart_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  ASSERT_OK(session->Start());
  ASSERT_OK(session->Start());
  EXPECT_THAT(session->AddHook(std::make_unique<RecordingHook>("late", HookStage::kObserve, &events)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hook 'late' is added after")));
}

}  // namespace
}  // namespace ssl
