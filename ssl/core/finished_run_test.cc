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

// Counts the ends of phases.
class CountingHook : public Hook {
 public:
  explicit CountingHook(int64_t* ends) : ends_(*ends) {}
  absl::string_view name() const override { return "counting"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnPhaseEnd(StepContext&) override {
    ++ends_;
    return absl::OkStatus();
  }
  void VisitState(StateVisitor& visitor) override { visitor.Int("ends", ends_); }

 private:
  int64_t& ends_;
};

// A stop just before the end of the last phase is told of: what is saved then knows of no end.
TEST_F(FinishedRunTest, StopBeforeTheEndOfTheLastPhase_LeavesWhatARunWithoutItLeaves) {
  const auto train = [this](bool stops) {
    std::vector<std::string> events;
    auto slow = std::make_unique<RecordingHook>("slow", HookStage::kObserve, &events);
    slow->At("OnPhaseEnd", [stops](StepContext& context) -> absl::Status {
      if (!stops || context.state.iteration < 20) return absl::OkStatus();
      context.stop.Request(kStopTerminate);
      return absl::CancelledError("gives way");
    });
    const absl::StatusOr<std::unique_ptr<Session>> session = Make();
    EXPECT_OK(session);
    EXPECT_OK((*session)->AddHook(std::move(slow)));
    int64_t ends = 0;
    EXPECT_OK((*session)->AddHook(std::make_unique<CountingHook>(&ends)));
    EXPECT_OK((*session)->Train());
    return ends;
  };
  EXPECT_EQ(train(/*stops=*/true), 1);
  EXPECT_THAT(Names(), Not(Contains("FINISHED")));
  EXPECT_EQ(train(/*stops=*/false), 2);
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_20"));
  const CapturedLog log;
  EXPECT_EQ(train(/*stops=*/false), 2) << "it knows of both";
  EXPECT_THAT(log.lines, Contains("resuming at iteration 20 of 20: nothing is left to do"));
}

}  // namespace
}  // namespace ssl
