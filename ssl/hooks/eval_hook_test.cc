// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/eval_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/one_hot.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The images of class c, [kClasses, 1, 1], are the unit vector c. Each rank has its share of the samples.
class UnitVectorSource : public BatchSource {
 public:
  UnitVectorSource(int64_t samples, int64_t rank = 0, int64_t ranks = 1)
      : samples_(samples), rank_(rank), ranks_(ranks) {}

  int64_t batches_per_epoch() const override { return (PerRank() + kBatch - 1) / kBatch; }
  int64_t dataset_size() const override { return samples_; }
  absl::Status StartEpoch(int64_t, int64_t first_batch) override {
    ++epochs;
    next_ = first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    if (next_ == batches_per_epoch()) return nullptr;
    const int64_t count = std::min(kBatch, PerRank() - next_ * kBatch);
    // Samples rank, rank + ranks, ...; the first ones again where they do not divide.
    batch_.indices = ((at::arange(count) + next_ * kBatch) * ranks_ + rank_).remainder(samples_);
    batch_.targets = batch_.indices.remainder(kClasses);
    const at::Tensor looks = batch_.targets.add(batch_.indices.eq(misleading)).remainder(kClasses);
    batch_.views = {at::one_hot(looks, kClasses).to(at::kFloat).view({count, kClasses, 1, 1})};
    ++next_;
    if (on_batch) on_batch(next_);
    return &batch_;
  }

  static constexpr int64_t kBatch = 8;
  static constexpr int64_t kClasses = 4;
  int epochs = 0;
  int64_t misleading = -1;  // the sample that looks like one of the next class
  std::function<void(int64_t)> on_batch;

 private:
  int64_t PerRank() const { return (samples_ + ranks_ - 1) / ranks_; }

  const int64_t samples_;
  const int64_t rank_;
  const int64_t ranks_;
  int64_t next_ = 0;
  Batch batch_;
};

EvalOptions Options() {
  EvalOptions options;
  options.online_evaluation = true;
  options.knn_k = 5;
  options.linear_epochs = 5;
  return options;
}

struct Sources {
  UnitVectorSource* train;
  UnitVectorSource* test;
};

EvalData MakeData(Sources* sources, int64_t rank = 0, int64_t ranks = 1) {
  auto train = std::make_unique<UnitVectorSource>(41, rank, ranks);
  auto test = std::make_unique<UnitVectorSource>(21, rank, ranks);
  *sources = {train.get(), test.get()};
  EvalData data;
  data.train.batches = std::move(train);
  data.test.batches = std::move(test);
  return data;
}

// Ends train epoch `epoch` of `num_epochs`; returns the values that the hook adds.
std::map<std::string, double> EndEpoch(EvalHook& hook, FakeStep& step, int64_t epoch, int64_t num_epochs = 100) {
  step.state.train_phase_index = epoch;
  step.state.iteration = 10 * (epoch + 1);
  step.context.num_epochs = num_epochs;
  step.context.meter_reports.clear();
  EXPECT_OK(hook.OnPhaseEnd(step.context));
  std::map<std::string, double> values;
  for (const MeterReport& report : step.context.meter_reports) {
    for (const MeterValue& value : report.values)
      values[report.scope + "/" + report.meter + "_" + value.metric] = value.value;
  }
  return values;
}

TEST(EvalHook, Values_ArePercentagesOfTheTestSamples) {
  Sources sources;
  EvalHook hook(Options(), MakeData(&sources));
  FakeStep step;
  ASSERT_OK(hook.OnStart(step.context));
  EXPECT_THAT(EndEpoch(hook, step, 0),
              ElementsAre(std::pair<const std::string, double>("Evaluation/knn_top_1", 100.0),
                          std::pair<const std::string, double>("Evaluation/knn_top_5", 100.0),
                          std::pair<const std::string, double>("Evaluation/linear_top_1", 100.0),
                          std::pair<const std::string, double>("Evaluation/linear_top_5", 100.0)));
  sources.test->misleading = 6;  // one of 21 samples
  EXPECT_NEAR(EndEpoch(hook, step, 1).at("Evaluation/knn_top_1"), 100.0 * 20 / 21, 1e-9);
}

TEST(EvalHook, EpochsBetween_HaveNoValuesAndTheLastAlways) {
  EvalOptions options = Options();
  options.epoch_frequency = 3;
  options.linear = false;
  Sources sources;
  EvalHook hook(options, MakeData(&sources));
  FakeStep step;
  std::vector<int64_t> evaluated;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    if (!EndEpoch(hook, step, epoch, 8).empty()) evaluated.push_back(epoch + 1);
  }
  EXPECT_THAT(evaluated, ElementsAre(3, 6, 8));
  EXPECT_EQ(sources.train->epochs, 3) << "data are read when they are needed only";
  step.state.training = false;
  EXPECT_THAT(EndEpoch(hook, step, 2), IsEmpty()) << "a test phase";
}

// detectron2's cases: (max 30, period 15) 2, (31, 15) 3, (20, 0) 1.
TEST(EvalHook, Iterations_AreThoseOfThePeriodAndTheEnd) {
  for (const auto& [max, period, expected] : {std::tuple<int64_t, int64_t, int>{30, 15, 2}, {31, 15, 3}, {20, 0, 1}}) {
    EvalOptions options = Options();
    options.epoch_frequency = -1;
    options.iter_frequency = period;
    Sources sources;
    EvalHook hook(options, MakeData(&sources));
    FakeStep step;
    step.state.train_phase_index = 0;
    step.context.num_epochs = 1;
    step.context.batches_per_epoch = max;
    for (step.state.iteration = 1; step.state.iteration <= max; ++step.state.iteration) {
      step.state.batch_in_phase = step.state.iteration;
      step.context.meter_reports.clear();
      ASSERT_OK(hook.OnStep(step.context));
    }
    step.context.meter_reports.clear();
    step.state.iteration = max;
    ASSERT_OK(hook.OnPhaseEnd(step.context));
    EXPECT_EQ(sources.train->epochs, expected) << max << " " << period;
    EXPECT_THAT(step.context.meter_reports, SizeIs(2)) << "the phase has the last values";
  }
}

TEST(EvalHook, ValuesOfIterations_AreAReportOfTheirOwn) {
  EvalOptions options = Options();
  options.iter_frequency = 4;
  options.linear = false;
  Sources sources;
  EvalHook hook(options, MakeData(&sources));
  hook.set_instance_name("second");
  FakeStep step;
  step.context.batches_per_epoch = 10;
  step.metrics.Add("Training/Loss", 2.0);
  step.state.iteration = 4;
  ASSERT_OK(hook.OnStep(step.context));
  ASSERT_THAT(step.sink.reports, SizeIs(1));
  EXPECT_EQ(step.sink.reports[0].iteration, 4);
  EXPECT_THAT(step.sink.reports[0].values,
              ElementsAre(std::pair<const std::string, double>("Evaluation/second_knn_top_1", 100.0),
                          std::pair<const std::string, double>("Evaluation/second_knn_top_5", 100.0)));
  ASSERT_OK_AND_ASSIGN(const MetricReport window, step.metrics.Report(5, 0, step.context.communicator));
  EXPECT_THAT(window.values, ElementsAre(std::pair<const std::string, double>("Training/Loss", 2.0)))
      << "the window of the training metrics stays open";
}

TEST(EvalHook, APhaseEnd_HasTheValuesOfItsOwnIterationOnly) {
  EvalOptions options = Options();
  options.epoch_frequency = -1;
  options.iter_frequency = 4;
  Sources sources;
  EvalHook hook(options, MakeData(&sources));
  FakeStep step;
  step.context.num_epochs = 3;
  step.context.batches_per_epoch = 10;
  step.state.iteration = 8;
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(EndEpoch(hook, step, 0), IsEmpty()) << "iteration 10";
  step.state.iteration = 20;
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(EndEpoch(hook, step, 1), SizeIs(4)) << "iteration 20";
  EXPECT_EQ(sources.train->epochs, 2);
  EvalHook resumed(options, MakeData(&sources));
  EXPECT_THAT(EndEpoch(resumed, step, 1), SizeIs(4)) << "a run that was stopped between the two events";
}

TEST(EvalHook, TheLastStepOfAPhase_IsLeftToThePhasesEnd) {
  EvalOptions options = Options();
  options.iter_frequency = 5;
  Sources sources;
  EvalHook hook(options, MakeData(&sources));
  FakeStep step;
  step.context.batches_per_epoch = 21;
  step.context.batches_per_update = 2;
  step.state.iteration = 10;
  step.state.batch_in_phase = 20;  // one batch is left, and an update takes two
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(step.sink.reports, IsEmpty());
  EXPECT_THAT(EndEpoch(hook, step, 0), SizeIs(4));
  EXPECT_EQ(sources.train->epochs, 1);
}

TEST(EvalHook, FeaturesThatAreNotFinite_AreAWarningAndNoValue) {
  class InfiniteModel : public FakeModel {
   public:
    std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
      return {views[0] * std::numeric_limits<float>::infinity()};
    }
  } model;
  FakeStep step;
  StepContext context{step.state, model, nullptr, step.context.communicator, step.metrics, step.stop, nullptr};
  Sources sources;
  EvalHook hook(Options(), MakeData(&sources));
  CapturedLog log;
  ASSERT_OK(hook.OnPhaseEnd(context));
  EXPECT_THAT(context.meter_reports, IsEmpty());
  EXPECT_THAT(log.warnings, ElementsAre(AllOf(HasSubstr("eval"), HasSubstr("not finite"))));
}

TEST(EvalHook, AStop_EndsItAfterABatchWithoutValues) {
  Sources sources;
  EvalHook hook(Options(), MakeData(&sources));
  FakeStep step;
  StopToken interruption;
  step.context.interruption = &interruption;
  int64_t batches = 0;
  sources.train->on_batch = [&](int64_t batch) {
    batches = batch;
    if (batch == 2) interruption.Request(kStopTerminate);
  };
  EXPECT_THAT(hook.OnPhaseEnd(step.context), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_THAT(step.context.meter_reports, IsEmpty());
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(sources.test->epochs, 0);
}

TEST(EvalHook, AnInterruptedEvaluation_DoesNotRepeatTheOneBefore) {
  EvalOptions options = Options();
  options.iter_frequency = 4;
  Sources sources;
  EvalHook hook(options, MakeData(&sources));
  FakeStep step;
  StopToken interruption;
  step.context.interruption = &interruption;
  step.context.batches_per_epoch = 10;
  step.state.iteration = 4;
  ASSERT_OK(hook.OnStep(step.context));
  interruption.Request(kStopTerminate);
  step.state.iteration = 8;
  ASSERT_OK(hook.OnStep(step.context));
  ASSERT_THAT(step.sink.reports, SizeIs(1));
  EXPECT_EQ(step.sink.reports[0].iteration, 4);
}

TEST(EvalHook, TwoRanks_MeasureEachSampleOnceAndAgree) {
  std::vector<std::map<std::string, double>> values(2);
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    Sources sources;
    EvalHook hook(Options(), MakeData(&sources, communicator.rank(), 2));
    sources.test->misleading = 0;  // sample 0 is also rank 1's last one, because 21 are odd
    FakeStep step(communicator);
    values[communicator.rank()] = EndEpoch(hook, step, 0);
    return absl::OkStatus();
  }));
  EXPECT_EQ(values[0], values[1]);
  EXPECT_NEAR(values[0].at("Evaluation/knn_top_1"), 100.0 * 20 / 21, 1e-9);
}

// Its features are the image's under a permutation that stands in its state, as running statistics do.
class PermutingModel : public FakeModel {
 public:
  explicit PermutingModel(int64_t shift) : permutation(at::eye(UnitVectorSource::kClasses).roll({shift}, {1})) {}
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {views[0].flatten(1).matmul(permutation)};
  }
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("permutation", permutation); }

  at::Tensor permutation;
};

TEST(EvalHook, RanksWhoseStatisticsDiffer_MeasureRankZerosModel) {
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    Sources sources;
    EvalHook hook(Options(), MakeData(&sources, communicator.rank(), 2));
    PermutingModel model(communicator.rank());
    const at::Tensor own = model.permutation.clone();
    FakeStep step(communicator);
    StepContext context{step.state, model, &step.optimizer, communicator, step.metrics, step.stop, &step.saver};
    context.num_epochs = 1;
    EXPECT_OK(hook.OnPhaseEnd(context));
    EXPECT_THAT(context.meter_reports, SizeIs(2));
    for (const MeterReport& report : context.meter_reports) EXPECT_EQ(report.values[0].value, 100.0) << report.meter;
    EXPECT_TRUE(model.permutation.equal(own)) << "training goes on as it was";
    return absl::OkStatus();
  }));
}

TEST(EvalHook, AStopOfOneRank_EndsTheEvaluationOfBoth) {
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    Sources sources;
    EvalHook hook(Options(), MakeData(&sources, communicator.rank(), 2));
    FakeStep step(communicator);
    StopToken interruption;
    step.context.interruption = &interruption;
    if (communicator.rank() == 1) interruption.Request(kStopTerminate);
    EXPECT_THAT(hook.OnPhaseEnd(step.context), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
    EXPECT_THAT(step.context.meter_reports, IsEmpty());
    return absl::OkStatus();
  }));
}

// A signal comes when all features are there.
class SignalledCommunicator : public Communicator {
 public:
  SignalledCommunicator(Communicator& base, StopToken& stop) : base_(base), stop_(stop) {}
  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override { return base_.AllReduce(tensor, op); }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override {
    constexpr int kGathers = 6;  // features, labels and indices of two splits
    if (++gathers_ == kGathers) stop_.Request(kStopTerminate);
    return base_.AllGather(tensor);
  }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override { return base_.Broadcast(tensor, root); }
  absl::Status Barrier() override { return base_.Barrier(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return base_.Duplicate(); }

 private:
  Communicator& base_;
  StopToken& stop_;
  int gathers_ = 0;
};

TEST(EvalHook, AStopWhileRank0Classifies_EndsTheEvaluationOfBoth) {
  ThreadWorld world(2, absl::Seconds(30));
  EXPECT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    StopToken signal;
    SignalledCommunicator signalled(communicator, signal);
    Sources sources;
    EvalHook hook(Options(), MakeData(&sources, communicator.rank(), 2));
    FakeStep step(signalled);
    if (communicator.rank() == 0) step.context.interruption = &signal;
    EXPECT_THAT(hook.OnPhaseEnd(step.context), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
    EXPECT_THAT(step.context.meter_reports, IsEmpty());
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
