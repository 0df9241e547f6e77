// SPDX-License-Identifier: Apache-2.0
//
// What a hook that a program adds itself reports at the ends of phases, or of steps, reaches all that reads such
// reports.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kReaders[] =
    "OPTIMIZER: {num_epochs: 6}\n"
    "HOOKS: {BEST_CHECKPOINT: {METRICS: [Host/words_seen]}, "
    "EARLY_STOP: {METRIC: Host/words_seen, MODE: max, PATIENCE: 1}}\n";

// The same number at the end of each phase.
class WordCounter : public Hook {
 public:
  explicit WordCounter(HookStage stage) : stage_(stage) {}
  absl::string_view name() const override { return "word_counter"; }
  HookStage stage() const override { return stage_; }
  absl::Status OnPhaseEnd(StepContext& context) override {
    context.meter_reports.push_back({"words", {{"seen", "", 7.0}}, "Host"});
    return absl::OkStatus();
  }

 private:
  const HookStage stage_;
};

struct Outcome {
  int64_t iterations = 0;  // 10 of each epoch
  std::string best;        // the file that names the best checkpoint
  std::string metrics;     // metrics.json
  std::vector<MetricReport> reports;
};

Outcome Train(std::unique_ptr<Hook> hook) {
  Registries registries;
  EXPECT_OK(RegisterHooks(&registries));
  EXPECT_OK(RegisterFakes(&registries));
  const std::string run = MakeTempDir("host_reports");
  ConfigNode config = FakeConfig(run);
  MergeInto(&config, *ParseYaml(kReaders, "test.yaml", nullptr));
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config, registries, {});
  EXPECT_OK(session);
  Outcome outcome;
  (*session)->metrics().AddSink(std::make_unique<MemorySink>(&outcome.reports));
  EXPECT_OK((*session)->AddHook(std::move(hook)));
  EXPECT_OK((*session)->Train());
  outcome.iterations = (*session)->state().iteration;
  outcome.best = PosixFileSystem().Read(run + "/checkpoints/best.step").value_or("");
  outcome.metrics = PosixFileSystem().Read(run + "/metrics.json").value_or("");
  return outcome;
}

TEST(HostReportsTest, HooksOfEachStageBeforePersist_ReachAllReaders) {
  for (const HookStage stage :
       {HookStage::kTiming, HookStage::kGuard, HookStage::kMutate, HookStage::kObserve, HookStage::kReport}) {
    SCOPED_TRACE(static_cast<int>(stage));
    const Outcome outcome = Train(std::make_unique<WordCounter>(stage));
    EXPECT_EQ(outcome.iterations, 20) << "early_stop: the second epoch has no better value";
    EXPECT_THAT(outcome.best, StartsWith("step_10"));
    EXPECT_THAT(outcome.metrics, HasSubstr("\"iteration\":20"));
    EXPECT_THAT(outcome.metrics, HasSubstr("\"host_words\":{\"seen\":7.0}"));
    ASSERT_FALSE(outcome.reports.empty());
    EXPECT_EQ(outcome.reports.back().iteration, 20);
    EXPECT_EQ(outcome.reports.back().values.count("Host/words_seen"), 1);
  }
}

// Less at each step.
class StepCounter : public WordCounter {
 public:
  StepCounter() : WordCounter(HookStage::kReport) {}
  absl::Status OnPhaseEnd(StepContext&) override { return absl::OkStatus(); }
  absl::Status OnStep(StepContext& context) override {
    if (context.state.iteration % 3 != 0) return absl::OkStatus();
    const double words = 30.0 - static_cast<double>(context.state.iteration);
    context.meter_reports.push_back({"words", {{"seen", "", words}}, "Host"});
    return absl::OkStatus();
  }
};

// What they decide by stands in the files.
TEST(HostReportsTest, ReportsOfSteps_ReachThoseThatDecideAndTheSinks) {
  const Outcome outcome = Train(std::make_unique<StepCounter>());
  EXPECT_EQ(outcome.iterations, 6) << "early_stop: no better value than that of 3";
  EXPECT_THAT(outcome.best, StartsWith("step_3\n"));
  std::vector<int64_t> iterations;
  for (const MetricReport& report : outcome.reports) {
    if (report.values.count("Host/words_seen") > 0) iterations.push_back(report.iteration);
  }
  EXPECT_THAT(iterations, ElementsAre(3, 6));
}

// A list of two numbers.
class ListCounter : public WordCounter {
 public:
  ListCounter() : WordCounter(HookStage::kReport) {}
  absl::Status OnStep(StepContext& context) override {
    context.meter_reports.push_back({"words", {{"each", "", 1.0}, {"each", "", 2.0}}, "Host"});
    return absl::OkStatus();
  }
};

TEST(HostReportsTest, ListsOfSteps_MakeNoEmptyReport) {
  for (const MetricReport& report : Train(std::make_unique<ListCounter>()).reports) {
    EXPECT_THAT(report.values, Not(IsEmpty())) << report.iteration;
  }
}

// Behind all of this library's hooks: gives way to a stop that comes as the phase of iteration `at` ends.
class GivesWay : public Hook {
 public:
  explicit GivesWay(int64_t at) : at_(at) {}
  absl::string_view name() const override { return "gives_way"; }
  HookStage stage() const override { return HookStage::kPersist; }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (context.state.iteration != at_) return absl::OkStatus();
    context.stop.Request(kStopTerminate);
    return absl::CancelledError("gives way");
  }

 private:
  const int64_t at_;
};

// The iteration at which early_stop ends a run whose value is never better than at first, and that is stopped in the
// phase's end at `stop`.
int64_t EndOfRunThatIsStoppedAt(int64_t stop) {
  Registries registries;
  EXPECT_OK(RegisterHooks(&registries));
  EXPECT_OK(RegisterFakes(&registries));
  ConfigNode config = FakeConfig(MakeTempDir("gives_way"));
  MergeInto(&config, *ParseYaml("OPTIMIZER: {num_epochs: 6}\n"
                                "HOOKS: {EARLY_STOP: {METRIC: Host/words_seen, MODE: max, PATIENCE: 2}}\n",
                                "test.yaml", nullptr));
  int64_t end = 0;
  for (const int64_t at : {stop, int64_t{-1}}) {
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config, registries, {});
    EXPECT_OK(session);
    EXPECT_OK((*session)->AddHook(std::make_unique<WordCounter>(HookStage::kReport)));
    EXPECT_OK((*session)->AddHook(std::make_unique<GivesWay>(at)));
    const absl::StatusOr<TrainOutcome> outcome = (*session)->Train();
    EXPECT_OK(outcome);
    EXPECT_TRUE(outcome.ok() && (*outcome == TrainOutcome::kStopped) == (at > 0));
    end = (*session)->state().iteration;
  }
  return end;
}

// The process that goes on tells all hooks of that end again.
TEST(HostReportsTest, AnEndThatIsToldTwice_CountsOnce) {
  EXPECT_EQ(EndOfRunThatIsStoppedAt(-1), 30);
  EXPECT_EQ(EndOfRunThatIsStoppedAt(10), 30);
  EXPECT_EQ(EndOfRunThatIsStoppedAt(20), 30);
  EXPECT_EQ(EndOfRunThatIsStoppedAt(30), 30);
}

// At each step, on rank 1 alone.
class SecondRankCounter : public StepCounter {
 public:
  absl::Status OnStep(StepContext& context) override {
    return context.communicator.rank() == 1 ? StepCounter::OnStep(context) : absl::OkStatus();
  }
};

// Real processes: what their user sees, and no wait for a timeout.
TEST(HostReportsTest, AReportOfAStepOnOneRankAlone_IsNamedWithTheRule) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    Registries registries;
    SSL_RETURN_IF_ERROR(RegisterHooks(&registries));
    SSL_RETURN_IF_ERROR(RegisterFakes(&registries));
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(FakeConfig(""), registries, std::move(options)));
    SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<SecondRankCounter>()));
    const absl::Status trained = session->Train().status();
    EXPECT_THAT(trained,
                StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("met other operations on other ranks"),
                                                            HasSubstr("all-gather "), HasSubstr("all-reduce ("))));
    if (communicator.rank() == 1) {
      EXPECT_THAT(trained.message(),
                  AllOf(HasSubstr("hook 'phase_metrics' (OnStep, iteration 3): rank 1 has reported Host/words_seen at "
                                  "iteration 3, and expected every rank to report the same names")));
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
