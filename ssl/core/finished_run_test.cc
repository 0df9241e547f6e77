// SPDX-License-Identifier: Apache-2.0
//
// What is left of a run when its last update is done, and what a start of it does then.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/core/testing/resume_fixture.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class FinishedRunTest : public ResumeRulesTest {};

// docs/decisions.md says why it is not skipped.
TEST_F(FinishedRunTest, FinishedRun_MeasuresItsLastTestPhaseAgainAndWritesNothing) {
  Set("TEST_MODEL", "true");
  const auto train = [this](std::vector<std::string>* events) {
    std::vector<double> losses;  // of test phases
    auto hook = std::make_unique<RecordingHook>("watch", HookStage::kPersist, events);
    hook->At("OnPhaseEnd", [&losses](StepContext& context) {
      if (context.state.training) return context.checkpoints->Save();
      losses.push_back(context.meter_reports.at(0).values.at(0).value);
      return absl::OkStatus();
    });
    const absl::StatusOr<std::unique_ptr<Session>> session = Make();
    EXPECT_OK(session);
    EXPECT_OK((*session)->AddHook(std::move(hook)));
    EXPECT_OK((*session)->Train());
    return losses;
  };
  std::vector<std::string> events;
  const std::vector<double> first = train(&events);
  ASSERT_EQ(first.size(), 2u);
  const std::vector<std::string> names = Names();
  EXPECT_THAT(names, Contains("FINISHED"));
  const std::string before = *files_.Read(Step(20) + "/state_rank0.safetensors");

  events.clear();
  const CapturedLog log;
  EXPECT_THAT(train(&events), ElementsAre(first[1]));
  EXPECT_THAT(events, Not(Contains("watch.OnUpdate@20")));
  EXPECT_THAT(events, Contains("watch.OnPhaseEnd@20").Times(1));
  EXPECT_THAT(log.lines, Contains("resuming at iteration 20 of 20: all updates are done, and what follows the last one "
                                  "comes again"));
  EXPECT_EQ(Names(), names);
  EXPECT_EQ(*files_.Read(Step(20) + "/state_rank0.safetensors"), before);
}

TEST_F(FinishedRunTest, FinishedRunWithoutTestPhases_HasNothingLeftToDo) {
  ASSERT_OK((*Make())->Train());
  const std::vector<std::string> names = Names();
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  EXPECT_THAT(session->Step(), IsOkAndHolds(false));
  EXPECT_OK(session->Finish());
  EXPECT_EQ(session->state().iteration, 20);
  EXPECT_EQ(Names(), names);
  EXPECT_THAT(log.lines, Contains("resuming at iteration 20 of 20: nothing is left to do"));
}

}  // namespace
}  // namespace ssl
