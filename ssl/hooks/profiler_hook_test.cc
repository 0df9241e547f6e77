// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profiler_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

struct Event {
  std::string name;
  double begin = 0.0;
  double end = 0.0;
};

// The events of a trace that have a duration.
std::vector<Event> ReadTrace(const std::string& path) {
  const absl::StatusOr<std::string> text = PosixFileSystem().Read(path);
  EXPECT_OK(text);
  std::vector<Event> events;
  if (!text.ok()) return events;
  const nlohmann::json trace = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(trace.is_object()) << path << " is no JSON";
  if (!trace.is_object()) return events;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event.value("ph", "") != "X") continue;
    const double begin = event["ts"].get<double>();
    events.push_back({event.value("name", ""), begin, begin + event["dur"].get<double>()});
  }
  return events;
}

std::set<std::string> NamesOf(const std::vector<Event>& events) {
  std::set<std::string> names;
  for (const Event& event : events) names.insert(event.name);
  return names;
}

std::vector<std::string> StepsOf(const std::vector<Event>& events) {
  std::set<std::string> steps;
  for (const Event& event : events) {
    if (absl::StartsWith(event.name, "ProfilerStep#")) steps.insert(event.name);
  }
  return {steps.begin(), steps.end()};
}

Event Find(const std::vector<Event>& events, const std::string& name) {
  for (const Event& event : events) {
    if (event.name == name) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

ProfilerOptions Options(int64_t start, int64_t warmup, int64_t count) {
  ProfilerOptions options;
  options.start_iteration = start;
  options.warmup_iterations = warmup;
  options.num_iterations = count;
  return options;
}

class ProfilerHookTest : public ::testing::Test {
 protected:
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

  std::vector<std::string> Files() { return PosixFileSystem().List(directory_).value_or(std::vector<std::string>()); }

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

  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_3-4.json"));
  const std::vector<Event> events = ReadTrace(directory_ + "/rank0_iterations_3-4.json");
  EXPECT_THAT(StepsOf(events), ElementsAre("ProfilerStep#3", "ProfilerStep#4"));
  EXPECT_THAT(NamesOf(events), IsSupersetOf({"aten::matmul", "aten::mm", "forward", "loss", "backward", "optimizer"}));
  const Event forward = Find(events, "forward");
  const Event product = Find(events, "aten::matmul");
  const Event first_step = Find(events, "ProfilerStep#3");
  EXPECT_LE(first_step.begin, forward.begin);
  EXPECT_LE(forward.begin, product.begin);
  EXPECT_LE(product.end, forward.end);
  EXPECT_LE(forward.end, first_step.end);
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
  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_0-1.json", "rank0_iterations_2-4.json"));
  EXPECT_THAT(StepsOf(ReadTrace(directory_ + "/rank0_iterations_2-4.json")),
              ElementsAre("ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"));

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
    EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("another rank")));
    EXPECT_THAT(statuses[1].message(), HasSubstr(directory_));
  }
}

// The other ranks may be gone, so that nobody waits for them.
TEST_F(ProfilerHookTest, AfterAnErrorOfTheRun_ARankSavesAlone) {
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    if (communicator.rank() == 1) return absl::OkStatus();
    ProfilerHook hook(Options(0, 0, 9), PosixFileSystem(), {directory_, ""});
    FakeStep step(communicator);
    absl::Status status = hook.OnStart(step.context);
    status.Update(hook.OnBatchStart(step.context));
    status.Update(hook.OnException(step.context, absl::InternalError("lost")));
    status.Update(hook.OnEnd(step.context));
    return status;
  }));
  EXPECT_THAT(Files(), ElementsAre("rank0_iterations_0-0.json"));
}

TEST(ProfilerInARun, Trace_ShowsTheRunWhichStaysTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(const TinyRunResult profiled,
                       TrainTinyRun("PROFILING: {START_ITERATION: 4, WARMUP_ITERATIONS: 1, NUM_ITERATIONS: 2, "
                                    "RUNTIME_PROFILING: {USE_PROFILER: True, RECORD_SHAPES: True}}"));
  EXPECT_EQ(profiled.state, plain.state);
  const std::vector<Event> events = ReadTrace(profiled.directory + "/profile/rank0_iterations_5-6.json");
  EXPECT_THAT(StepsOf(events), ElementsAre("ProfilerStep#5", "ProfilerStep#6"));
  EXPECT_THAT(NamesOf(events), IsSupersetOf({"aten::convolution", "aten::add", "forward", "backward", "optimizer"}));
}

}  // namespace
}  // namespace ssl
