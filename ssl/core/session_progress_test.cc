// SPDX-License-Identifier: Apache-2.0
//
// What a session tells of its progress and of its time.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/clock.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/hook.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kTotalSteps = 20;

TEST(StepTimeTest, LeavesOutWhatIsDoneBetweenPhases) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(FakeConfig("")));
  std::vector<std::string> events;
  absl::Time begin;
  absl::Duration between;
  double in_steps = 0.0;
  auto slow = std::make_unique<RecordingHook>("slow", HookStage::kObserve, &events);
  slow->At("OnPhaseEnd", [&](StepContext&) {
    const absl::Time entered = Clock::Real().Now();
    absl::Time now = entered;
    while (now - entered < 3 * (entered - begin)) now = Clock::Real().Now();
    between += now - entered;
    return absl::OkStatus();
  });
  auto reader = std::make_unique<RecordingHook>("reader", HookStage::kReport, &events);
  reader->At("OnEnd", [&](StepContext& context) {
    in_steps = context.perf_stats.Seconds(StepPart::kStepTotal);
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(slow)));
  ASSERT_OK(session->AddHook(std::move(reader)));
  ASSERT_OK(session->Start());
  begin = Clock::Real().Now();
  ASSERT_OK(session->Train());
  // Whatever the machine does beside: no moment is in both.
  EXPECT_LE(in_steps + absl::ToDoubleSeconds(between), absl::ToDoubleSeconds(Clock::Real().Now() - begin));
}

// Moves the test's clock: by a second in each train step, and by hours in all that is no training.
class ClockHook : public Hook {
 public:
  explicit ClockHook(std::vector<double>* trained) : trained_(*trained) {}

  absl::string_view name() const override { return "clock"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnStart(StepContext& context) override {
    context.perf_stats.UseClock(clock_);
    return absl::OkStatus();
  }
  absl::Status OnForward(StepContext& context) override {
    clock_.Advance(context.state.training ? absl::Seconds(1) : absl::Hours(1));
    return absl::OkStatus();
  }
  absl::Status OnStep(StepContext& context) override {
    if (!context.state.training) return absl::OkStatus();
    trained_.push_back(absl::ToDoubleSeconds(context.perf_stats.TrainingNow() - absl::UnixEpoch()));
    return context.state.iteration % 4 == 0 ? context.checkpoints->Save() : absl::OkStatus();
  }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (!context.state.training) clock_.Advance(absl::Hours(1));
    return absl::OkStatus();
  }
  void VisitState(StateVisitor& visitor) override { clock_.Advance(absl::Hours(1)); }

 private:
  ManualClock clock_;
  std::vector<double>& trained_;  // at the end of each train step
};

TEST(StepTimeTest, TheClockOfTraining_StandsStillInTestPhasesAndSaves) {
  ConfigNode config = FakeConfig(MakeTempDir("clock"));
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(true));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config));
  std::vector<double> trained;
  ASSERT_OK(session->AddHook(std::make_unique<ClockHook>(&trained)));
  ASSERT_OK(session->Train());
  ASSERT_EQ(trained.size(), kTotalSteps);
  for (size_t i = 1; i < trained.size(); ++i) EXPECT_EQ(trained[i] - trained[i - 1], 1.0) << i;
}

TEST(ProgressTest, IsNotedInTheHostsPlace) {
  RunProgress progress;
  SessionOptions options;
  options.progress = &progress;
  {
    ConfigNode config = FakeConfig(MakeTempDir("progress"));
    config.SetPath("TEST_MODEL", ConfigNode::FromBool(true));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(config, std::move(options)));
    EXPECT_EQ(progress.phase, "building");
    ASSERT_OK(session->Start());
    EXPECT_EQ(progress.phase, "starting");
    std::vector<std::string> phases;
    bool more = true;
    while (more) {
      ASSERT_OK_AND_ASSIGN(more, session->Step());
      if (more && (phases.empty() || phases.back() != progress.phase)) phases.push_back(progress.phase);
    }
    EXPECT_THAT(phases, ElementsAre("training", "testing", "training", "testing"));
    ASSERT_OK(session->Finish());
  }
  EXPECT_EQ(progress.phase, "finished");
  EXPECT_EQ(progress.rank, 0);
  EXPECT_EQ(progress.iteration, kTotalSteps);
  EXPECT_EQ(progress.epoch, 1);
  EXPECT_EQ(progress.last_checkpoint, kTotalSteps);
}

}  // namespace
}  // namespace ssl
