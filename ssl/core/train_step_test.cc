// SPDX-License-Identifier: Apache-2.0
//
// Train steps of a host's, in whole sessions.
#include "ssl/core/train_step.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Leaves the weights alone and counts its calls.
class IdleTrainStep : public TrainStep {
 public:
  explicit IdleTrainStep(int* calls) : calls_(calls) {}
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    SSL_RETURN_IF_ERROR(batches.Next());
    SSL_RETURN_IF_ERROR(Test(task, hooks, context));
    return batches.Finish();
  }
  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override {
    ++*calls_;
    context.loss = at::full({}, 1.0);
    return absl::OkStatus();
  }

 private:
  int* calls_;
};

TEST(TrainStepTest, AHostsOwnStep_IsChosenByName) {
  Registries registries = FakeRegistries();
  int calls = 0;
  ASSERT_OK(registries.train_steps.Register("idle_step", [&calls](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<TrainStep>>(std::make_unique<IdleTrainStep>(&calls));
  }));
  ConfigNode config = FakeConfig("");
  config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("idle_step"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Create(config, registries, {}));
  const uint32_t before = *HashState(session->model());
  ASSERT_OK(session->Train());
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(*HashState(session->model()), before);
}

// Takes and counts other numbers of batches than an update of two has.
class MiscountingTrainStep : public TrainStep {
 public:
  MiscountingTrainStep(int64_t taken, int64_t counted) : taken_(taken), counted_(counted) {}
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    context.loss = at::full({}, 1.0);
    for (int64_t i = 0; i < taken_; ++i) SSL_RETURN_IF_ERROR(batches.Next());
    for (int64_t i = 0; i < counted_; ++i) batches.Count();
    return absl::OkStatus();
  }
  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override {
    return absl::OkStatus();
  }

 private:
  const int64_t taken_;
  const int64_t counted_;
};

TEST(TrainStepTest, NumbersOfBatchesThatAreNotTheUpdates_EndTheRun) {
  for (const auto& [taken, counted] : {std::pair{2, 4}, {2, 1}, {1, 2}, {0, 0}, {3, 3}}) {
    Registries registries = FakeRegistries();
    const auto make = [taken = taken, counted = counted](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<TrainStep>>(std::make_unique<MiscountingTrainStep>(taken, counted));
    };
    ASSERT_OK(registries.train_steps.Register("miscounting_step", make));
    ConfigNode config = FakeConfig("");
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(2));
    config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("miscounting_step"));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Create(config, registries, {}));
    EXPECT_THAT(session->Step(),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr(absl::StrCat("train step 'miscounting_step' took ", taken, " batches and counted ",
                                                counted, " of an update that has 2"))));
  }
}

TEST(TrainStepTest, UnknownName_IsRefusedWithTheKnownOnes) {
  ConfigNode config = FakeConfig("");
  config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("standard_trainstep"));
  EXPECT_THAT(MakeSession(config),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'standard_train_step'?")));
}

}  // namespace
}  // namespace ssl
