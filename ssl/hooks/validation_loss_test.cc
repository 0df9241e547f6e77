// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/validation_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/generator_scope.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Images of sample i have the value i; in batches of 4.
class CountingSource : public BatchSource {
 public:
  CountingSource(int64_t samples, int64_t first) : samples_(samples), first_(first) {}
  int64_t batches_per_epoch() const override { return (samples_ + kBatch - 1) / kBatch; }
  int64_t dataset_size() const override { return samples_; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    EXPECT_EQ(epoch, 0);
    next_ = first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    const int64_t count = std::min(kBatch, samples_ - next_ * kBatch);
    if (count <= 0) return nullptr;
    batch_.indices = at::arange(count) + (first_ + next_ * kBatch);
    batch_.views = {batch_.indices.to(at::kFloat)};
    ++next_;
    return &batch_;
  }

 private:
  static constexpr int64_t kBatch = 4;
  const int64_t samples_;
  const int64_t first_;
  int64_t next_ = 0;
  Batch batch_;
};

// The loss is the mean of the batch. Each pass moves a statistic, draws a number and reports a metric, as a momentum
// encoder, dropout and a method that tells of itself do.
class RestlessMethod : public Method {
 public:
  absl::Status Forward(StepContext& context) override {
    passes.push_back(context.state.batch_in_phase);
    EXPECT_FALSE(context.state.training);
    EXPECT_FALSE(at::GradMode::is_enabled());
    drawn.push_back(at::rand({1}).item<float>());
    statistic.add_(1.0);
    ++counter;
    context.outputs = context.batch->views;
    return absl::OkStatus();
  }
  absl::Status ComputeLoss(StepContext& context) override {
    context.metrics.Add("method/metric", 1.0);
    context.loss = context.outputs[0].mean();
    return result;
  }
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("statistic", statistic);
    visitor.Int("counter", counter);
  }

  at::Tensor statistic = at::zeros({2});
  int64_t counter = 5;
  std::vector<int64_t> passes;
  std::vector<float> drawn;
  absl::Status result;
};

class ModeModel : public FakeModel {
 public:
  void SetTraining(bool training) override { modes.push_back(training); }
  std::vector<bool> modes;
};

TEST(ValidationLoss, FullBatches_AreAveraged) {
  FakeStep step;
  RestlessMethod method;
  CountingSource two_full(8, 0);
  ASSERT_OK_AND_ASSIGN(std::optional<double> loss, MeasureValidationLoss({method, two_full}, step.context));
  EXPECT_EQ(loss, 3.5);
  CountingSource with_a_rest(9, 0);
  ASSERT_OK_AND_ASSIGN(loss, MeasureValidationLoss({method, with_a_rest}, step.context));
  EXPECT_EQ(loss, 3.5) << "sample 8 is left out";
  CountingSource only_a_rest(3, 0);
  ASSERT_OK_AND_ASSIGN(loss, MeasureValidationLoss({method, only_a_rest}, step.context));
  EXPECT_EQ(loss, 1.0);
  EXPECT_THAT(method.passes, ElementsAre(0, 1, 0, 1, 0));
}

TEST(ValidationLoss, Everything_IsAsBefore) {
  FakeStep step;
  ModeModel model;
  StepContext context{step.state, model, nullptr, step.context.communicator, step.metrics, step.stop, nullptr};
  step.state.training = true;
  step.state.batch_in_phase = 3;
  context.loss = at::full({}, 2.0);
  RestlessMethod method;
  CountingSource source(8, 0);
  const at::Tensor generator = GeneratorState();
  for (int i = 0; i < 2; ++i) EXPECT_OK(MeasureValidationLoss({method, source}, context));
  EXPECT_TRUE(at::equal(GeneratorState(), generator));
  EXPECT_TRUE(at::equal(method.statistic, at::zeros({2})));
  EXPECT_EQ(method.counter, 5);
  EXPECT_EQ(step.state.batch_in_phase, 3);
  EXPECT_TRUE(step.state.training);
  EXPECT_EQ(context.loss.item<double>(), 2.0);
  EXPECT_EQ(context.batch, nullptr);
  EXPECT_THAT(step.metrics.Names(), ElementsAre());
  EXPECT_THAT(model.modes, ElementsAre(false, true, false, true));
  ASSERT_EQ(method.drawn.size(), 4);
  EXPECT_EQ(method.drawn[0], method.drawn[2]) << "the same numbers each time";
  EXPECT_NE(method.drawn[0], method.drawn[1]);
}

// Rank 0 has the samples 0 to 3, rank 1 those from 4 to 7. What each of them finds.
std::vector<absl::StatusOr<std::optional<double>>> OnTwoRanks(bool stops, const absl::Status& of_rank_1) {
  std::vector<absl::StatusOr<std::optional<double>>> found(2);
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    FakeStep step(communicator);
    StopToken interruption;
    if (stops && !is_first) interruption.Request(kStopTerminate);
    step.context.interruption = &interruption;
    RestlessMethod method;
    if (!is_first) method.result = of_rank_1;
    CountingSource source(4, 4 * communicator.rank());
    found[is_first ? 0 : 1] = MeasureValidationLoss({method, source}, step.context);
    return absl::OkStatus();
  }));
  return found;
}

TEST(ValidationLoss, Ranks_ShareTheMeanTheStopAndTheError) {
  for (const auto& loss : OnTwoRanks(false, absl::OkStatus())) {
    ASSERT_OK(loss);
    EXPECT_EQ(*loss, 3.5);
  }
  for (const auto& loss : OnTwoRanks(true, absl::OkStatus())) {
    ASSERT_OK(loss);
    EXPECT_EQ(*loss, std::nullopt);
  }
  const auto failed = OnTwoRanks(false, absl::InvalidArgumentError("3 views"));
  EXPECT_THAT(failed[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("config.DATA.TEST")));
  EXPECT_THAT(failed[1], StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 views")));
}

}  // namespace
}  // namespace ssl
