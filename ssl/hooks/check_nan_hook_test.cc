// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_nan_hook.h"

#include <ATen/ops/full.h>

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor Loss(double value) { return at::full({}, value, at::kFloat); }

TEST(CheckNanHook, FiniteLoss_Passes) {
  for (const double value : {0.0, -3.0, 1e30}) {
    FakeStep step;
    step.context.loss = Loss(value);

    EXPECT_OK(CheckNanHook().OnLossAndMeter(step.context));
  }
}

TEST(CheckNanHook, LossThatIsNotFinite_StopsWithIterationEpochValueAndHints) {
  FakeStep step;
  step.state.iteration = 12;
  step.state.train_phase_index = 3;
  step.context.loss = Loss(kNan);

  EXPECT_THAT(CheckNanHook().OnLossAndMeter(step.context),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("loss is nan at iteration 12 (epoch 3), expected a finite number"),
                             HasSubstr("learning rate"))));
}

TEST(CheckNanHook, InfiniteLoss_Stops) {
  for (const double value : {kInfinity, -kInfinity}) {
    FakeStep step;
    step.context.loss = Loss(value);

    EXPECT_THAT(CheckNanHook().OnLossAndMeter(step.context),
                StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("inf at iteration 0")));
  }
}

TEST(CheckNanHook, LossWithGraph_IsReadWithoutTouchingIt) {
  FakeStep step;
  step.context.loss = Loss(1.0).set_requires_grad(true);

  EXPECT_OK(CheckNanHook().OnLossAndMeter(step.context));

  EXPECT_TRUE(step.context.loss.requires_grad());
}

TEST(CheckNanHook, OneBadRank_StopsAllRanksAtTheSameStep) {
  ThreadWorld world(2, absl::Seconds(60));
  absl::Status status_of[2];

  ASSERT_OK(world.Run([&](Communicator& communicator) {
    FakeStep step(communicator);
    step.context.loss = Loss(communicator.rank() == 1 ? kNan : 0.5);
    status_of[communicator.rank()] = CheckNanHook().OnLossAndMeter(step.context);
    return absl::OkStatus();
  }));

  EXPECT_THAT(status_of[0],
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is 0.5 here and not finite on another rank")));
  EXPECT_THAT(status_of[1], StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("loss is nan")));
}

TEST(CheckNanHook, Stage_PrecedesWhatChangesTheModel) { EXPECT_LT(CheckNanHook().stage(), HookStage::kMutate); }

}  // namespace
}  // namespace ssl
