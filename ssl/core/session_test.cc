// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/session.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kTotalSteps = 20;

uint32_t ModelHash(Session& session) { return *HashState(session.model()); }

// The hash of the weights after training without interruption.
uint32_t UninterruptedHash(absl::string_view schedule = "linear") {
  ConfigNode config = FakeConfig(MakeTempDir("uninterrupted"));
  config.SetPath("OPTIMIZER.param_schedulers.lr.name", ConfigNode::FromString(schedule));
  std::unique_ptr<Session> session = *MakeSession(config);
  EXPECT_OK(session->Train());
  return ModelHash(*session);
}

TEST(SessionTest, Train_RunsAllStepsAndLearns) {
  ConfigNode config = FakeConfig("");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
  std::vector<double> losses;
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("losses", HookStage::kObserve, &events);
  hook->At("OnStep", [&losses](StepContext& context) {
    losses.push_back(context.loss.item<double>());
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));

  ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());

  EXPECT_EQ(outcome, TrainOutcome::kFinished);
  EXPECT_EQ(session->state().iteration, kTotalSteps);
  EXPECT_EQ(session->state().samples_seen, kTotalSteps * 4);
  EXPECT_EQ(session->state().where(), 1.0);
  EXPECT_LT(losses.back(), losses.front() / 2);
}

TEST(SessionTest, EventsOfOneEpochComeInOrder) {
  ConfigNode config = FakeConfig("");
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(1));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("h", HookStage::kObserve, &events);
  hook->At("OnStep", [](StepContext& context) {
    context.stop.Request(kStopUser);
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));

  ASSERT_OK(session->Train());

  EXPECT_THAT(events, ElementsAre("h.OnStart@0", "h.OnPhaseStart@0", "h.OnForward@0", "h.OnLossAndMeter@0",
                                  "h.OnBackward@0", "h.OnUpdate@0", "h.OnStep@1", "h.OnEnd@1"));
}

TEST(SessionTest, TestPhases_RunWithoutTraining) {
  ConfigNode config = FakeConfig("");
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
  std::vector<bool> training;
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("h", HookStage::kObserve, &events);
  hook->At("OnPhaseStart", [&training](StepContext& context) {
    training.push_back(context.state.training);
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));

  ASSERT_OK(session->Train());

  EXPECT_THAT(training, ElementsAre(true, false, true, false));
  EXPECT_EQ(session->state().iteration, kTotalSteps);
}

TEST(SessionTest, Step_DrivenByTheHost_EqualsTrain) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  int64_t steps = 0;
  ASSERT_OK_AND_ASSIGN(bool more, session->Step());
  while (more) {
    ++steps;
    ASSERT_OK_AND_ASSIGN(more, session->Step());
  }
  ASSERT_OK(session->Finish());
  EXPECT_EQ(steps, kTotalSteps);
  EXPECT_EQ(ModelHash(*session), UninterruptedHash());
}

class ResumeTest : public ::testing::TestWithParam<std::tuple<int64_t, const char*>> {};

TEST_P(ResumeTest, StopAfterAnyStep_ResumesBitwise) {
  const auto [stop_at, schedule] = GetParam();
  ConfigNode config = FakeConfig(MakeTempDir("resume"));
  config.SetPath("OPTIMIZER.param_schedulers.lr.name", ConfigNode::FromString(schedule));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> first, MakeSession(config));
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("stop", HookStage::kObserve, &events);
    hook->At("OnStep", [stop_at = stop_at](StepContext& context) {
      if (context.state.iteration == stop_at) context.stop.Request(kStopTerminate);
      return absl::OkStatus();
    });
    ASSERT_OK(first->AddHook(std::move(hook)));
    ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, first->Train());
    ASSERT_EQ(outcome, TrainOutcome::kStopped);
    ASSERT_EQ(first->state().iteration, stop_at);
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> second, MakeSession(config));

  ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, second->Train());

  EXPECT_EQ(outcome, TrainOutcome::kFinished);
  EXPECT_EQ(second->state().iteration, kTotalSteps);
  EXPECT_EQ(ModelHash(*second), UninterruptedHash(schedule));
}

INSTANTIATE_TEST_SUITE_P(EveryStep, ResumeTest,
                         ::testing::Combine(::testing::Range<int64_t>(1, kTotalSteps + 1),
                                            ::testing::Values("linear", "linear_by_epoch")));

TEST(SessionTest, FinishedRun_IsNotTrainedAgain) {
  const ConfigNode config = FakeConfig(MakeTempDir("finished"));
  ASSERT_OK((*MakeSession(config))->Train());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> again, MakeSession(config));
  ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, again->Train());
  EXPECT_EQ(outcome, TrainOutcome::kFinished);
  EXPECT_EQ(ModelHash(*again), UninterruptedHash());
}

TEST(SessionTest, OverwriteExisting_StartsAnew) {
  ConfigNode config = FakeConfig(MakeTempDir("overwrite"));
  ASSERT_OK((*MakeSession(config))->Train());
  config.SetPath("CHECKPOINT.OVERWRITE_EXISTING", ConfigNode::FromBool(true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> again, MakeSession(config));
  ASSERT_OK(again->Step());
  EXPECT_EQ(again->state().iteration, 1);
}

// Going on, the run would end at iteration 12 of 10, with schedules beyond their ends.
TEST(SessionTest, ChangeOfGradientAccumulation_IsNeverAccepted) {
  ConfigNode config = FakeConfig(MakeTempDir("updates"));
  std::unique_ptr<Session> session = *MakeSession(config);
  while (session->state().iteration < 5) ASSERT_TRUE(*session->Step());
  ASSERT_OK(session->Finish());
  session.reset();
  config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(2));
  config.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"OPTIMIZER", "DATA"}));
  EXPECT_THAT(MakeSession(config).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("an epoch of the run has 10 updates, and would go on with 5"),
                             HasSubstr("OPTIMIZER.grad_acc_steps: "), HasSubstr("/checkpoints/step_5"))));
}

TEST(SessionTest, SecondSessionInOneDirectory_IsRefused) {
  const ConfigNode config = FakeConfig(MakeTempDir("locked"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> first, MakeSession(config));
  EXPECT_THAT(MakeSession(config), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("locked")));
}

TEST(SessionTest, HeldRunDirectory_IsUsedAndStaysLocked) {
  const std::string path = MakeTempDir("held");
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> directory,
                       RunDirectory::Open(path, PosixFileSystem(), *communicator));
  SessionOptions options;
  options.run_directory = directory.get();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(FakeConfig(path), FakeRegistries(), std::move(options)));
  ASSERT_OK(session->Train());
  SessionOptions elsewhere;
  elsewhere.run_directory = directory.get();
  EXPECT_THAT(Session::Create(FakeConfig(path + "/other"), FakeRegistries(), std::move(elsewhere)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected config.CHECKPOINT.DIR")));
}

// Two runs in one place would mix their checkpoints.
TEST(SessionTest, RemovedRunDirectory_EndsTheRunAtTheNextSave) {
  const std::string path = MakeTempDir("removed");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> first, MakeSession(FakeConfig(path)));
  ASSERT_OK(first->Step());
  ASSERT_OK(PosixFileSystem().RemoveAll(path));
  EXPECT_THAT(first->Train(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("removed or replaced")));
  EXPECT_FALSE(PosixFileSystem().Exists(path));
}

TEST(SessionTest, SecondRunInPlaceOfARemovedOne_IsLeftAlone) {
  const std::string path = MakeTempDir("replaced");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> first, MakeSession(FakeConfig(path)));
  ASSERT_OK(first->Step());
  ASSERT_OK(PosixFileSystem().RemoveAll(path));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> second, MakeSession(FakeConfig(path)));
  EXPECT_THAT(first->Train(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("removed or replaced")));
  EXPECT_FALSE(PosixFileSystem().Exists(path + "/checkpoints"));
  EXPECT_OK(second->Train());
}

// Has the state that it is told to have.
class StatefulHook : public Hook {
 public:
  explicit StatefulHook(std::vector<std::string> names) : names_(std::move(names)), counts_(names_.size(), 0) {}
  absl::string_view name() const override { return "counter"; }
  HookStage stage() const override { return HookStage::kObserve; }
  void VisitState(StateVisitor& visitor) override {
    for (size_t i = 0; i < names_.size(); ++i) visitor.Int(names_[i], counts_[i]);
  }

 private:
  const std::vector<std::string> names_;
  std::vector<int64_t> counts_;
};

// A session with a hook of that state; without one for no names.
std::unique_ptr<Session> SessionWith(std::vector<std::string> names, const std::string& directory) {
  std::unique_ptr<Session> session = *MakeSession(FakeConfig(directory));
  if (names.empty()) return session;
  EXPECT_OK(session->AddHook(std::make_unique<StatefulHook>(std::move(names))));
  return session;
}

TEST(SessionTest, CheckpointOfAnotherModel_IsRefusedAndNamed) {
  const std::string directory = MakeTempDir("other");
  ASSERT_OK(SessionWith({"count"}, directory)->Train());
  EXPECT_THAT(SessionWith({"count", "total"}, directory)->Train(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step_20: saved by another model, optimizer or "
                                                                     "configuration: hooks/counter/total is missing")));
}

TEST(SessionTest, CheckpointFromBeforeAHook_IsTakenAndSoIsOneFromAfterIt) {
  const std::string directory = MakeTempDir("new_hook");
  int64_t iteration = 0;
  for (const std::vector<std::string>& names : {std::vector<std::string>{}, {"count"}, {}}) {
    const std::unique_ptr<Session> session = SessionWith(names, directory);
    ASSERT_OK(session->Step());
    EXPECT_EQ(session->state().iteration, ++iteration);
    ASSERT_OK(session->Finish());
  }
}

TEST(SessionTest, HookError_EndsTrainingAndReachesAllHooks) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  auto failing = std::make_unique<RecordingHook>("failing", HookStage::kGuard, &events);
  failing->At("OnUpdate", [](StepContext& context) { return absl::DataLossError("disk is gone"); });
  ASSERT_OK(session->AddHook(std::move(failing)));
  ASSERT_OK(session->AddHook(std::make_unique<RecordingHook>("last", HookStage::kReport, &events)));

  EXPECT_THAT(session->Train(),
              StatusIs(absl::StatusCode::kDataLoss, "hook 'failing' (OnUpdate, iteration 0): disk is gone"));

  EXPECT_THAT(std::vector<std::string>(events.end() - 4, events.end()),
              ElementsAre("failing.OnException@0", "last.OnException@0", "failing.OnEnd@0", "last.OnEnd@0"));
}

TEST(SessionTest, UnknownLoss_NamesTheNearest) {
  ConfigNode config = FakeConfig("");
  config.SetPath("LOSS.name", ConfigNode::FromString("swva_loss"));
  EXPECT_THAT(MakeSession(config), StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'swav_loss'?")));
}

TEST(SessionTest, WrongTypes_AreAllReported) {
  ConfigNode config = FakeConfig("");
  config.SetPath("SEED_VALUE", ConfigNode::FromString("many"));
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(0));
  const absl::Status status = MakeSession(config).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.SEED_VALUE")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.OPTIMIZER.num_epochs")));
}

// Runs two ranks from where `directory` stands to `stop_at`, or to the end with -1. Says where they began and what
// weights they end with.
struct RankResult {
  int64_t began_at = -1;
  uint32_t hash = 0;
};

std::vector<RankResult> TrainTwoRanks(const std::string& directory, int64_t stop_at) {
  std::vector<RankResult> results(2);
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(FakeConfig(directory), FakeRegistries(), std::move(options)));
    SSL_RETURN_IF_ERROR(session->Start());
    RankResult& result = results[communicator.rank()];
    result.began_at = session->state().iteration;
    for (bool more = true; more && session->state().iteration != stop_at;) {
      SSL_ASSIGN_OR_RETURN(more, session->Step());
    }
    SSL_RETURN_IF_ERROR(session->Finish());
    result.hash = ModelHash(*session);
    return absl::OkStatus();
  }));
  return results;
}

TEST(SessionTest, TwoRanks_HoldEqualWeightsAndResume) {
  const std::string directory = MakeTempDir("two_ranks");
  const std::vector<RankResult> part = TrainTwoRanks(directory, 3);
  EXPECT_EQ(part[0].hash, part[1].hash);
  const std::vector<RankResult> resumed = TrainTwoRanks(directory, -1);
  for (const RankResult& rank : resumed) {
    EXPECT_EQ(rank.began_at, 3);
    EXPECT_EQ(rank.hash, resumed[0].hash);
    EXPECT_NE(rank.hash, part[0].hash);
  }
}

TEST(SessionTest, StopOnOneRank_StopsAllAtTheSameStep_AndIsNoRequestToTheOther) {
  std::vector<int64_t> stopped_at(2);
  StopToken stops[2];
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    options.stop = &stops[communicator.rank()];
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(FakeConfig(""), FakeRegistries(), std::move(options)));
    SSL_RETURN_IF_ERROR(session->Step().status());
    if (communicator.rank() == 1) session->RequestStop(kStopTerminate);
    SSL_ASSIGN_OR_RETURN(const TrainOutcome outcome, session->Train());
    EXPECT_EQ(outcome, TrainOutcome::kStopped);
    EXPECT_EQ(session->progress().phase, "stopped");
    stopped_at[communicator.rank()] = session->state().iteration;
    return absl::OkStatus();
  }));
  EXPECT_THAT(stopped_at, ElementsAre(1, 1));
  EXPECT_FALSE(stops[0].requested()) << "its own first signal must not count as a second one";
  EXPECT_EQ(stops[1].reason(), kStopTerminate);
}

TEST(SessionTest, HooksThatOneRankCannotMake_AreAnErrorOfAll) {
  std::vector<absl::Status> made(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    Registries registries = FakeRegistries();
    registries.configured_hooks =
        [](const BuildContext& context) -> absl::StatusOr<std::vector<std::unique_ptr<Hook>>> {
      if (context.communicator.rank() == 1) return absl::NotFoundError("no such folder: /test_images");
      return std::vector<std::unique_ptr<Hook>>();
    };
    SessionOptions options;
    options.communicator = &communicator;
    made[communicator.rank()] = Session::Create(FakeConfig(""), registries, std::move(options)).status();
    return absl::OkStatus();
  }));
  EXPECT_THAT(made[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("making the hooks failed on rank 1 ")));
  EXPECT_THAT(made[1], StatusIs(absl::StatusCode::kNotFound, HasSubstr("/test_images")));
}

TEST(SessionTest, StopAfterTheLastStep_IsAFinishedRun) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("stop", HookStage::kObserve, &events);
  hook->At("OnEnd", [](StepContext& context) {
    context.stop.Request(kStopTerminate);
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));
  ASSERT_OK_AND_ASSIGN(const TrainOutcome outcome, session->Train());
  EXPECT_EQ(outcome, TrainOutcome::kFinished);
  EXPECT_EQ(session->progress().phase, "finished");
}

TEST(SessionTest, AddedHookTwice_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  ASSERT_OK(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kObserve, &events)));
  EXPECT_THAT(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kGuard, &events)),
              StatusIs(absl::StatusCode::kAlreadyExists, "hook 'h' is added twice"));
}

}  // namespace
}  // namespace ssl
