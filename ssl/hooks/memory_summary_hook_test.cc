// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_summary_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/optimizer.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kMillion = 1000000;

// Keeps two tensors for its one parameter, as Adam does.
class TwoMoments : public FakeOptimizer {
 public:
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("first", first_);
    visitor.Tensor("second", second_);
  }

 private:
  at::Tensor first_ = at::zeros({kMillion});
  at::Tensor second_ = at::zeros({kMillion});
};

MemorySummaryHook Hook(bool prints, int64_t iteration, bool dumps) {
  MemorySummaryOptions options;
  options.print_memory_summary = prints;
  options.log_iteration_num = iteration;
  options.dump_memory_on_exception = dumps;
  return MemorySummaryHook(options);
}

// The lines of `steps` train steps of a process that starts at `first_iteration`.
std::vector<std::string> LinesOf(MemorySummaryHook hook, FakeStep& step, int64_t steps) {
  CapturedLog log;
  for (int64_t i = 0; i < steps; ++i) {
    ++step.state.iteration;
    EXPECT_OK(hook.OnStep(step.context));
  }
  return log.lines;
}

TEST(MemorySummaryHook, Line_CountsWhatTheTensorsTake) {
  FakeStep step;
  at::Tensor weight = at::zeros({kMillion}).set_requires_grad(true);
  step.model.parameters = {{"weight", weight}, {"frozen", at::zeros({kMillion / 2})}};
  weight.mutable_grad() = at::zeros({kMillion});
  TwoMoments optimizer;
  step.context.optimizer = &optimizer;

  EXPECT_THAT(LinesOf(Hook(true, 0, false), step, 1),
              ElementsAre(AllOf(StartsWith("memory after 1 step: process "),
                                ContainsRegex("process [1-9][0-9.]+ MiB, [1-9][0-9.]+ MiB at its peak; "),
                                EndsWith("; model 5.7 MiB, gradients 3.8 MiB, optimizer 7.6 MiB"))));
}

TEST(MemorySummaryHook, Line_ComesOnceAfterTheChosenStepOfTheProcess) {
  FakeStep step;
  step.state.iteration = step.context.first_iteration = 40;

  EXPECT_THAT(LinesOf(Hook(true, 2, false), step, 10), ElementsAre(StartsWith("memory after 3 steps: ")));
}

TEST(MemorySummaryHook, TestPhases_AreNoTrainSteps) {
  FakeStep step;
  step.state.training = false;

  EXPECT_THAT(LinesOf(Hook(true, 0, false), step, 2), IsEmpty());
}

TEST(MemorySummaryHook, RunWithoutAnOptimizer_HasNoStateOfIt) {
  FakeStep step;
  step.context.optimizer = nullptr;

  EXPECT_THAT(LinesOf(Hook(true, 0, false), step, 1),
              ElementsAre(EndsWith("model 0.0 MiB, gradients 0.0 MiB, optimizer 0.0 MiB")));
}

TEST(MemorySummaryHook, Exception_WritesTheLineWhenItIsAskedFor) {
  for (const bool dumps : {false, true}) {
    FakeStep step;
    step.state.iteration = 7;
    MemorySummaryHook hook = Hook(false, 0, dumps);
    CapturedLog log;

    EXPECT_OK(hook.OnException(step.context, absl::ResourceExhaustedError("no memory")));

    EXPECT_THAT(log.lines, SizeIs(dumps ? 1 : 0));
    EXPECT_THAT(LinesOf(Hook(false, 0, dumps), step, 3), IsEmpty());
  }
}

TEST(MemorySummaryHook, RankZeroAlone_WritesAtTheChosenStep) {
  CapturedLog log;
  ThreadWorld world(2, absl::Seconds(60));

  ASSERT_OK(world.Run([](Communicator& communicator) {
    FakeStep step(communicator);
    step.state.iteration = 1;
    return Hook(true, 0, false).OnStep(step.context);
  }));

  EXPECT_THAT(log.lines, SizeIs(1));
}

}  // namespace
}  // namespace ssl
