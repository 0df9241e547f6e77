// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_nan_hook.h"

#include <ATen/ops/full.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor Loss(double value) { return at::full({}, value, at::kFloat); }

// What the hook says to an update whose batches have these losses, at the one point where it says so.
absl::Status CheckLosses(FakeStep& step, const std::vector<double>& losses) {
  CheckNanHook hook(10);
  for (const double loss : losses) {
    step.context.loss = Loss(loss);
    EXPECT_OK(hook.OnLossAndMeter(step.context));
  }
  const absl::Status status = hook.OnBackward(step.context);
  step.context.loss = Loss(0.5);
  EXPECT_OK(hook.OnLossAndMeter(step.context));
  EXPECT_OK(hook.OnBackward(step.context)) << "the next update is another one";
  return status;
}

TEST(CheckNanHook, FiniteLoss_Passes) {
  for (const double value : {0.0, -3.0, 1e30}) {
    FakeStep step;
    EXPECT_OK(CheckLosses(step, {value}));
    EXPECT_OK(CheckLosses(step, {value, 1.0}));
  }
}

TEST(CheckNanHook, LossThatIsNotFinite_StopsWithIterationEpochValueAndHints) {
  FakeStep step;
  step.state.iteration = 12;
  step.state.train_phase_index = 3;

  EXPECT_THAT(CheckLosses(step, {kNan}),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("loss is nan at iteration 12 (epoch 3), expected a finite number"),
                             HasSubstr("learning rate"))));
}

TEST(CheckNanHook, InfiniteLoss_Stops) {
  for (const double value : {kInfinity, -kInfinity}) {
    FakeStep step;
    EXPECT_THAT(CheckLosses(step, {value}), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("inf at iteration 0")));
  }
}

TEST(CheckNanHook, LossOfAnyBatchOfAnUpdate_Stops) {
  for (const std::vector<double>& losses :
       std::vector<std::vector<double>>{{kNan, 1.0, 2.0}, {1.0, kNan, kInfinity}, {1.0, 2.0, kNan}}) {
    FakeStep step;
    EXPECT_THAT(CheckLosses(step, losses), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is nan")));
  }
}

// Also when the gradients are not looked at.
TEST(CheckNanHook, LossOfAnUpdateThatIsSkipped_Stops) {
  FakeStep step;
  step.context.found_inf = at::full({}, 1.0, at::kFloat);
  EXPECT_THAT(CheckLosses(step, {kNan}), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is nan")));
}

TEST(CheckNanHook, LossOfATestBatch_StopsAtOnce) {
  FakeStep step;
  step.state.training = false;
  step.context.loss = Loss(1.0);
  EXPECT_OK(CheckNanHook(10).OnLossAndMeter(step.context));
  step.context.loss = Loss(kNan);
  EXPECT_THAT(CheckNanHook(10).OnLossAndMeter(step.context),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is nan")));
}

TEST(CheckNanHook, LossWithGraph_IsReadWithoutTouchingIt) {
  FakeStep step;
  step.context.loss = Loss(1.0).set_requires_grad(true);

  EXPECT_OK(CheckNanHook(10).OnLossAndMeter(step.context));

  EXPECT_TRUE(step.context.loss.requires_grad());
}

TEST(CheckNanHook, OneBadRank_StopsAllRanksAtTheSameStep) {
  ThreadWorld world(2, absl::Seconds(60));
  absl::Status status_of[2];

  ASSERT_OK(world.Run([&](Communicator& communicator) {
    FakeStep step(communicator);
    status_of[communicator.rank()] = CheckLosses(step, {communicator.rank() == 1 ? kNan : 0.5});
    return absl::OkStatus();
  }));

  EXPECT_THAT(status_of[0],
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is 0.5 here and not finite on another rank")));
  EXPECT_THAT(status_of[1], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is nan")));
}

// A step whose optimizer has two parameters, "a" and "b", with gradients of ones.
struct StepWithParameters : FakeStep {
  StepWithParameters() : FakeStep() { AddParameters(); }
  explicit StepWithParameters(Communicator& communicator) : FakeStep(communicator) { AddParameters(); }

  void AddParameters() {
    ParameterGroup group;
    for (const char* name : {"a", "b"}) {
      at::Tensor parameter = at::full({2, 3}, 1e38, at::kFloat).set_requires_grad(true);
      parameter.mutable_grad() = at::full({2, 3}, 1e38, at::kFloat);
      group.names.push_back(name);
      group.parameters.push_back(parameter);
    }
    EXPECT_OK(optimizer.Initialize({group}));
  }
  at::Tensor parameter(int i) { return optimizer.groups()[0].parameters[i].detach(); }
  at::Tensor gradient(int i) { return optimizer.groups()[0].parameters[i].grad(); }
};

TEST(CheckNanHook, LargeButFiniteGradientsAndWeights_Pass) {
  StepWithParameters step;
  step.state.iteration = 9;
  EXPECT_OK(CheckNanHook(10).OnBackward(step.context));
  EXPECT_OK(CheckNanHook(10).OnUpdate(step.context));
  step.optimizer.groups()[0].parameters[0].mutable_grad() = at::Tensor();
  EXPECT_OK(CheckNanHook(10).OnBackward(step.context)) << "a parameter without a gradient";
  EXPECT_OK(step.optimizer.Initialize({}));
  EXPECT_OK(CheckNanHook(10).OnBackward(step.context)) << "no parameters at all";
}

TEST(CheckNanHook, GradientThatIsNotFinite_IsNamed) {
  for (const double value : {kNan, kInfinity, -kInfinity}) {
    StepWithParameters step;
    step.state.iteration = 4;
    step.gradient(1)[1][2].fill_(value);
    EXPECT_THAT(
        CheckNanHook(10).OnBackward(step.context),
        StatusIs(absl::StatusCode::kOutOfRange, AllOf(HasSubstr("gradient of b is NaN or infinite at iteration 4"),
                                                      HasSubstr("the weights are those before this step"))));
  }
}

TEST(CheckNanHook, OverflowOfFloat16_IsLeftToTheLossScale) {
  StepWithParameters step;
  step.gradient(0).fill_(kInfinity);
  step.context.found_inf = at::full({}, 1.0, at::kFloat);
  EXPECT_OK(CheckNanHook(10).OnBackward(step.context));
}

// The loss scale's own look at them has cost a pass over all gradients and a reduction already.
TEST(CheckNanHook, GradientsThatAreKnownToBeFinite_AreNotReadAgain) {
  StepWithParameters step;
  step.gradient(0).fill_(kInfinity);  // would be found
  step.context.found_inf = at::full({}, 0.0, at::kFloat);
  EXPECT_OK(CheckNanHook(10).OnBackward(step.context));
}

TEST(CheckNanHook, ParametersWithoutNamesOrValues_Pass) {
  StepWithParameters step;
  ParameterGroup& group = step.optimizer.groups()[0];
  group.name = "regularized";
  group.names.pop_back();
  at::Tensor empty = at::full({0, 3}, 1.0, at::kFloat).set_requires_grad(true);
  empty.mutable_grad() = at::full({0, 3}, 1.0, at::kFloat);
  group.parameters.push_back(empty);
  EXPECT_OK(CheckNanHook(1).OnBackward(step.context));
  EXPECT_OK(CheckNanHook(1).OnUpdate(step.context));
  step.gradient(1).fill_(kNan);
  EXPECT_THAT(CheckNanHook(1).OnBackward(step.context),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("gradient of parameter 1 of group 'regularized'")));
}

TEST(CheckNanHook, Weights_AreLookedAtEverySoManyUpdatesAndAfterTheLast) {
  StepWithParameters step;
  step.state.max_iterations = 13;
  step.parameter(0)[0][0].fill_(kNan);
  std::vector<int64_t> found;
  for (step.state.iteration = 0; step.state.iteration < 13; ++step.state.iteration) {
    const absl::Status status = CheckNanHook(5).OnUpdate(step.context);
    if (status.ok()) continue;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a is NaN or infinite")));
    found.push_back(step.state.iteration + 1);
  }
  EXPECT_THAT(found, ElementsAre(5, 10, 13));
}

TEST(CheckNanHook, GradientOrWeightOfOneRank_StopsAllRanks) {
  absl::Status status_of[2][2];
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    StepWithParameters step(communicator);
    if (communicator.rank() == 1) step.gradient(0).fill_(kNan);
    if (communicator.rank() == 1) step.parameter(0).fill_(kNan);
    status_of[0][communicator.rank()] = CheckNanHook(1).OnBackward(step.context);
    status_of[1][communicator.rank()] = CheckNanHook(1).OnUpdate(step.context);
    return absl::OkStatus();
  }));
  EXPECT_THAT(status_of[0][0], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a gradient on another rank")));
  EXPECT_THAT(status_of[0][1], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("gradient of a")));
  EXPECT_THAT(status_of[1][0], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a weight on another rank")));
  EXPECT_THAT(status_of[1][1], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a is NaN")));
}

TEST(CheckNanHook, Stage_PrecedesWhatChangesTheModel) { EXPECT_LT(CheckNanHook(10).stage(), HookStage::kMutate); }

// What the hook says to ten updates on a device of which the third has this loss and this gradient of "b".
// Updates 0 to `updates` - 1 on a device, of which the third has this loss and this gradient. What the hook says to the
// last; none before it may wait.
absl::Status CheckOnDevice(CheckNanHook& hook, FakeStep& step, int64_t updates, double loss, double gradient) {
  StandinDevice::Install();
  for (at::Tensor& parameter : step.optimizer.groups()[0].parameters) {
    parameter.mutable_grad().reset();
    parameter.set_data(parameter.detach().to(StandinDevice::device()));
  }
  absl::Status looked;
  for (int64_t iteration = 0; iteration < updates; ++iteration) {
    step.state.iteration = iteration;
    const bool is_third = iteration == 2;
    const TransferLog log;
    step.context.loss = at::full({}, is_third ? loss : 0.5, StandinDevice::device());
    // Only "b" has a gradient.
    step.optimizer.groups()[0].parameters[1].mutable_grad() =
        at::full({2, 3}, is_third ? gradient : 1e38, StandinDevice::device());
    EXPECT_OK(hook.OnLossAndMeter(step.context));
    EXPECT_OK(hook.OnBackward(step.context));
    EXPECT_OK(hook.OnUpdate(step.context));
    ++step.state.iteration;
    EXPECT_OK(looked);
    looked = hook.OnStep(step.context);
    EXPECT_THAT(log.reads(), SizeIs(iteration == 9 ? 1 : 0)) << iteration;
  }
  return looked;
}

absl::Status CheckTenOnDevice(double loss, double gradient) {
  CheckNanHook hook(10);
  StepWithParameters step;
  return CheckOnDevice(hook, step, 10, loss, gradient);
}

// By the number that the trainer says in front: of the updates that are made.
TEST(CheckNanHook, OnADevice_LooksOnceWhereWeightsAreLookedAt) {
  EXPECT_OK(CheckTenOnDevice(0.5, 1e38));
  EXPECT_THAT(CheckTenOnDevice(kNan, 1e38),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("a loss of the last 10 updates is NaN or infinite at iteration 10"),
                             HasSubstr("weights have changed since"))));
  EXPECT_THAT(CheckTenOnDevice(0.5, kInfinity),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("gradient of b is NaN or infinite at iteration 10")));
}

TEST(CheckNanHook, RunOfADeviceThatEndsBetweenLooks_IsLookedAtOnceMore) {
  for (const double loss : {0.5, kNan}) {
    CheckNanHook hook(10);
    StepWithParameters step;
    ASSERT_OK(CheckOnDevice(hook, step, 5, loss, 1e38));
    const absl::Status ended = hook.OnEnd(step.context);
    if (std::isnan(loss)) {
      EXPECT_THAT(ended, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("NaN or infinite at iteration 5")));
    } else {
      EXPECT_OK(ended);
    }
  }
}

TEST(CheckNanHook, EndThatHasBeenLookedAtOrFollowsAnError_ReadsNothing) {
  for (const int64_t updates : {0, 5, 10}) {
    CheckNanHook hook(10);
    StepWithParameters step;
    const double loss = updates == 5 ? kNan : 0.5;
    ASSERT_OK(CheckOnDevice(hook, step, updates, loss, 1e38));
    if (updates == 5) {
      EXPECT_OK(hook.OnException(step.context, absl::InternalError("another rank is gone")));
    }
    const TransferLog log;
    EXPECT_OK(hook.OnEnd(step.context));
    EXPECT_THAT(log.reads(), IsEmpty());
  }
}

}  // namespace
}  // namespace ssl
