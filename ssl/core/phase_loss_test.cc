// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/phase_loss.h"

#include <ATen/ops/full.h>

#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/core/method.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/no_model.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

class PlainMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext&) override { return absl::OkStatus(); }
};

class PhaseLossTest : public ::testing::Test {
 protected:
  PhaseLossTest() { context_.batch = &batch_; }

  void Add(double loss, int64_t samples) {
    batch_.indices = at::full({samples}, 0, at::kLong);
    context_.loss = at::full({}, loss);
    phase_loss_.Add(context_, method_);
  }

  double Mean() { return phase_loss_.Mean(*communicator_).value(); }

  TrainState state_;
  NoModel model_;
  PlainMethod method_;
  MetricStore metrics_;
  StopToken stop_;
  Batch batch_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  StepContext context_{state_, model_, nullptr, *communicator_, metrics_, stop_, nullptr};
  PhaseLoss phase_loss_{at::kCPU};
};

TEST_F(PhaseLossTest, InTraining_EachBatchCountsAsOne) {
  state_.training = true;
  Add(1.0, 4);
  Add(2.0, 1);
  EXPECT_EQ(Mean(), 1.5);
}

TEST_F(PhaseLossTest, InATest_ABatchCountsAsItsSamples) {
  state_.training = false;
  Add(1.0, 3);
  Add(5.0, 1);
  EXPECT_EQ(Mean(), 2.0);
}

TEST_F(PhaseLossTest, OfNothing_IsZero) {
  Add(1.0, 3);
  phase_loss_.Reset();
  EXPECT_EQ(Mean(), 0.0);
}

TEST_F(PhaseLossTest, Fit_CountsOtherBatchesWithTheSameMean) {
  state_.training = true;
  for (const double loss : {1.0, 2.0, 3.0, 6.0}) Add(loss, 4);
  phase_loss_.Fit(2);
  EXPECT_EQ(Mean(), 3.0);
  Add(6.0, 4);
  EXPECT_EQ(Mean(), 4.0) << "one of three";
}

TEST_F(PhaseLossTest, State_HasTheNamesOfOlderCheckpointsAndGoesOn) {
  state_.training = true;
  Add(std::numeric_limits<double>::infinity(), 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> infinite, CollectState(phase_loss_));
  EXPECT_EQ(infinite.at(0).name, "phase_loss");
  phase_loss_.Reset();
  Add(1.0, 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(phase_loss_));
  PhaseLoss other(at::kCPU);
  ASSERT_OK(RestoreState(other, state, "test"));
  EXPECT_EQ(other.Mean(*communicator_).value(), 1.0);
  EXPECT_EQ(HashState(other).value(), HashState(phase_loss_).value());
}

}  // namespace
}  // namespace ssl
