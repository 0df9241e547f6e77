// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_replicas_hook.h"

#include <ATen/ops/ones.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

absl::Status StepAt(int64_t iteration, CheckReplicasHook& hook, FakeStep& step) {
  step.state.iteration = iteration;
  return hook.OnStep(step.context);
}

absl::Status PhaseEndAt(int64_t iteration, CheckReplicasHook& hook, FakeStep& step) {
  step.state.iteration = iteration;
  return hook.OnPhaseEnd(step.context);
}

TEST(CheckReplicasHook, ParametersThatDrift_AreFoundWhenTheyAreDue) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    FakeStep step(communicator);
    step.model.parameters = {{"trunk.weight", at::ones({2})}, {"head.bias", at::ones({3})}};
    CheckReplicasOptions options;
    options.freq = 5;
    CheckReplicasHook hook(options);
    EXPECT_OK(StepAt(5, hook, step));
    if (communicator.rank() == 1) step.model.parameters[1].value[2].add_(1e-6);
    EXPECT_OK(StepAt(9, hook, step)) << "not yet";
    step.state.training = false;
    EXPECT_OK(StepAt(10, hook, step)) << "a test phase";
    step.state.training = true;
    for (const absl::Status& found : {StepAt(10, hook, step), PhaseEndAt(13, hook, step)}) {
      if (communicator.rank() == 1) {
        EXPECT_THAT(found, StatusIs(absl::StatusCode::kDataLoss,
                                    HasSubstr("rank 1 has other weights than rank 0: head.bias;")));
      } else {
        EXPECT_THAT(found, StatusIs(absl::StatusCode::kAborted, HasSubstr("comparing weights")));
      }
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
