// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/validation_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/default_generators.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/generator_scope.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Images of sample i have the value i, and its label; in batches of 4.
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
    if (!result.ok()) return result;
    const int64_t count = std::min(kBatch, samples_ - next_ * kBatch);
    if (count <= 0) return nullptr;
    batch_.indices = at::arange(count) + (first_ + next_ * kBatch);
    batch_.views = {batch_.indices.to(at::kFloat)};
    batch_.targets = batch_.indices;
    ++next_;
    return &batch_;
  }

  absl::Status result;  // of reading

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
    phases.push_back(context.state.phase_index);
    statistic.add_(1.0);
    ++counter;
    context.outputs = context.batch->views;
    last_device = context.batch->targets.device();
    return absl::OkStatus();
  }
  absl::Status ComputeLoss(StepContext& context) override {
    context.metrics.Add("method/metric", 1.0);
    at::Tensor one = at::ones({1});
    if (result.ok()) SSL_RETURN_IF_ERROR(context.communicator.AllReduce(one, ReduceOp::kSum));
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
  c10::Device last_device = c10::kCPU;  // of the labels
  std::vector<int64_t> phases;
  absl::Status result;
};

class ModeModel : public FakeModel {
 public:
  void SetTraining(bool training) override { modes.push_back(training); }
  std::vector<bool> modes;
};

class DeviceModel : public FakeModel {
 public:
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("weight", weight); }
  at::Tensor weight = at::ones({1}, StandinDevice::device());
};

TEST(ValidationLoss, OnADevice_LabelsAreCheckedBeforeTheyAreCopied) {
  StandinDevice::Install();
  FakeStep step;
  DeviceModel model;
  StepContext context{step.state, model, nullptr, step.context.communicator, step.metrics, step.stop, nullptr};
  RestlessMethod method;
  CountingSource source(8, 0);
  ASSERT_OK_AND_ASSIGN(const std::optional<ValidationLoss> loss,
                       MeasureValidationLoss({method, source, Autocast::kOff, 0, /*num_classes=*/8}, context));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->mean, 3.5);
  EXPECT_EQ(method.last_device, StandinDevice::device());
  EXPECT_THAT(MeasureValidationLoss({method, source, Autocast::kOff, 0, /*num_classes=*/6}, context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sample 2 of the batch has the label 6")));
}

TEST(ValidationLoss, FullBatches_AreAveraged) {
  FakeStep step;
  RestlessMethod method;
  CountingSource two_full(8, 0);
  ASSERT_OK_AND_ASSIGN(std::optional<ValidationLoss> loss, MeasureValidationLoss({method, two_full}, step.context));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->mean, 3.5);
  EXPECT_EQ(loss->samples, 8);
  CountingSource with_a_rest(9, 0);
  ASSERT_OK_AND_ASSIGN(loss, MeasureValidationLoss({method, with_a_rest}, step.context));
  EXPECT_EQ(loss->mean, 3.5) << "sample 8 is left out";
  EXPECT_EQ(loss->samples, 8) << "sample 8 is not counted";
  CountingSource only_a_rest(3, 0);
  ASSERT_OK_AND_ASSIGN(loss, MeasureValidationLoss({method, only_a_rest}, step.context));
  EXPECT_EQ(loss->mean, 1.0);
  EXPECT_EQ(loss->samples, 3);
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
  for (int i = 0; i < 2; ++i) {
    step.state.phase_index = 7 + i;
    EXPECT_OK(MeasureValidationLoss({method, source}, context));
  }
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
  EXPECT_THAT(method.phases, ElementsAre(0, 0, 0, 0)) << "what a method draws by the phase is the same, too";
}

TEST(ValidationLoss, StateThatIsNotFinite_IsPutBackAsItWas) {
  FakeStep step;
  RestlessMethod method;
  method.statistic.fill_(std::numeric_limits<float>::infinity());
  CountingSource source(4, 0);
  EXPECT_OK(MeasureValidationLoss({method, source}, step.context));
  EXPECT_TRUE(at::equal(method.statistic, at::full({2}, std::numeric_limits<float>::infinity())));
  EXPECT_EQ(method.counter, 5);
}

TEST(ValidationLoss, ATry_IsOneBatchWithItsError) {
  FakeStep step;
  RestlessMethod method;
  CountingSource source(8, 0);
  EXPECT_OK(TryValidationLoss({method, source}, step.context));
  EXPECT_THAT(method.passes, ElementsAre(0));
  EXPECT_EQ(method.counter, 5);
  method.result = absl::InvalidArgumentError("1 view, expected 2");
  EXPECT_THAT(TryValidationLoss({method, source}, step.context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 view, expected 2")));
}

// Rank 0 has the samples 0 to 3, rank 1 those from 4 to 7. What each of them finds.
std::vector<absl::StatusOr<std::optional<ValidationLoss>>> OnTwoRanks(bool stops, const absl::Status& of_source) {
  std::vector<absl::StatusOr<std::optional<ValidationLoss>>> found(2);
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    FakeStep step(communicator);
    StopToken interruption;
    if (stops && !is_first) interruption.Request(kStopTerminate);
    step.context.interruption = &interruption;
    RestlessMethod method;
    CountingSource source(4, 4 * communicator.rank());
    if (!is_first) source.result = of_source;
    found[is_first ? 0 : 1] = MeasureValidationLoss({method, source}, step.context);
    return absl::OkStatus();
  }));
  return found;
}

TEST(ValidationLoss, Ranks_ShareTheMeanTheStopAndTheError) {
  for (const auto& loss : OnTwoRanks(false, absl::OkStatus())) {
    ASSERT_OK(loss);
    ASSERT_TRUE(loss->has_value());
    EXPECT_EQ((*loss)->mean, 3.5);
    EXPECT_EQ((*loss)->samples, 8) << "of both ranks";
  }
  for (const auto& loss : OnTwoRanks(true, absl::OkStatus())) {
    ASSERT_OK(loss);
    EXPECT_FALSE(loss->has_value());
  }
  // The other rank must not wait for it in the method's own collective.
  const auto failed = OnTwoRanks(false, absl::DataLossError("image 5 is broken"));
  EXPECT_THAT(failed[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("config.DATA.TEST")));
  EXPECT_THAT(failed[1], StatusIs(absl::StatusCode::kDataLoss, HasSubstr("image 5")));
}

}  // namespace
}  // namespace ssl
