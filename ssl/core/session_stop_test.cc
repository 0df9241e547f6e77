// SPDX-License-Identifier: Apache-2.0
//
// The token by which a host stops its sessions: who hears of it, and when.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

std::unique_ptr<Session> SessionWith(StopToken* stop, const std::string& directory = "") {
  SessionOptions options;
  options.stop = stop;
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(FakeConfig(directory), std::move(options));
  EXPECT_OK(session);
  return *std::move(session);
}

TEST(SessionStopTest, RequestToOneSession_ReachesAllThatShareTheToken) {
  StopToken shared;
  const std::unique_ptr<Session> first = SessionWith(&shared);
  const std::unique_ptr<Session> second = SessionWith(&shared);
  const std::unique_ptr<Session> other = SessionWith(nullptr);
  for (const auto* session : {&first, &second, &other}) ASSERT_OK((*session)->Step());
  first->RequestStop(kStopTerminate);
  EXPECT_EQ(first->Train().value(), TrainOutcome::kStopped);
  EXPECT_EQ(second->Train().value(), TrainOutcome::kStopped);
  EXPECT_EQ(second->state().iteration, 1);
  EXPECT_EQ(other->Train().value(), TrainOutcome::kFinished) << "it has a token of its own";
}

// What is asked for before a run begins leaves nothing behind but the directory: the next session is the first.
TEST(SessionStopTest, BeforeTheFirstStep_TrainsAndSavesNothing) {
  const std::string directory = MakeTempDir("stop");
  {
    StopToken stop;
    const std::unique_ptr<Session> session = SessionWith(&stop, directory);
    session->RequestStop(kStopTerminate);
    EXPECT_EQ(session->Train().value(), TrainOutcome::kStopped);
    EXPECT_EQ(session->state().iteration, 0);
  }
  EXPECT_THAT(PosixFileSystem().List(directory + "/checkpoints").value(), IsEmpty());
  const std::unique_ptr<Session> whole = SessionWith(nullptr);
  ASSERT_OK(whole->Train());
  const std::unique_ptr<Session> resumed = SessionWith(nullptr, directory);
  EXPECT_EQ(resumed->Train().value(), TrainOutcome::kFinished);
  EXPECT_EQ(*HashState(resumed->model()), *HashState(whole->model()));
}

TEST(SessionStopTest, HookSeesWhoInterrupts_AndHasATokenOfItsOwn) {
  StopToken stop;
  const std::unique_ptr<Session> session = SessionWith(&stop);
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("long", HookStage::kObserve, &events);
  std::vector<bool> seen;
  hook->At("OnStep", [&](StepContext& context) {
    EXPECT_NE(&context.stop, &stop);
    seen.push_back(context.interruption->requested());
    stop.Request(kStopTerminate);
    seen.push_back(context.interruption->requested());
    EXPECT_FALSE(context.stop.requested());
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));
  EXPECT_EQ(session->Train().value(), TrainOutcome::kStopped);
  EXPECT_EQ(seen, (std::vector<bool>{false, true}));
}

// The stop comes while a phase change is made: the phase that has ended is saved as ended.
TEST(SessionStopTest, BetweenTwoPhases_StopsBeforeTheNext) {
  const std::string directory = MakeTempDir("stop");
  StopToken stop;
  std::vector<std::string> events;
  {
    const std::unique_ptr<Session> session = SessionWith(&stop, directory);
    auto hook = std::make_unique<RecordingHook>("ends", HookStage::kObserve, &events);
    hook->At("OnPhaseEnd", [&stop](StepContext&) {
      stop.Request(kStopTerminate);
      return absl::OkStatus();
    });
    ASSERT_OK(session->AddHook(std::move(hook)));
    EXPECT_EQ(session->Train().value(), TrainOutcome::kStopped);
    EXPECT_EQ(session->state().iteration, 10);
    EXPECT_EQ(session->state().phase_ended, 1);
    EXPECT_EQ(session->progress().phase, "stopped");
  }
  EXPECT_THAT(events, Contains("ends.OnPhaseStart@0").Times(1));
  EXPECT_THAT(events, Not(Contains("ends.OnPhaseStart@10")));
  events.clear();
  const std::unique_ptr<Session> resumed = SessionWith(nullptr, directory);
  ASSERT_OK(resumed->AddHook(std::make_unique<RecordingHook>("ends", HookStage::kObserve, &events)));
  ASSERT_OK(resumed->Train());
  EXPECT_THAT(events, Contains("ends.OnPhaseEnd@20").Times(1));
  EXPECT_THAT(events, Not(Contains("ends.OnPhaseEnd@10"))) << "its hooks know of it";
}

}  // namespace
}  // namespace ssl
