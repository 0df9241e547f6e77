// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kBatch = 4;
constexpr int64_t kDim = 3;

at::Tensor Wave(at::IntArrayRef shape, double phase) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat) * 0.9 + phase).reshape(shape);
}

class PrototypesModel : public Model {
 public:
  explicit PrototypesModel(const std::vector<int64_t>& clusters) {
    for (size_t head = 0; head < clusters.size(); ++head) {
      parameters_.push_back({"heads.0.prototypes" + std::to_string(head) + ".weight",
                             Wave({clusters[head], kDim}, 0.1).requires_grad_(), false});
    }
  }
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    std::vector<at::Tensor> outputs = {views[0]};
    for (const NamedParameter& parameter : parameters_) outputs.push_back(at::linear(views[0], parameter.value));
    return outputs;
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return parameters_; }
  void SetTraining(bool) override {}

 private:
  std::vector<NamedParameter> parameters_;
};

class SwavMethodTest : public ::testing::Test {
 protected:
  SwavMethodTest() {
    options_.embedding_dim = kDim;
    options_.num_prototypes = {3};
    context_.batch_size = kBatch;
  }

  // One training step up to the loss, embeddings depending on `phase`.
  absl::Status Step(SwavMethod& method, double phase) {
    context_.outputs = model_.Forward({Wave({2 * kBatch, kDim}, phase)});
    for (const auto& hook : method.MakeHooks()) EXPECT_OK(hook->OnForward(context_));
    const absl::Status status = method.ComputeLoss(context_);
    return status.ok() && state_.training ? method.Advance(context_) : status;
  }

  at::Tensor StateOf(SwavMethod& method, const std::string& name) {
    const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(method);
    if (!state.ok()) return at::Tensor();
    for (const NamedTensor& entry : *state) {
      if (entry.name == name) return entry.tensor.clone();
    }
    return at::Tensor();
  }

  SwavOptions options_;
  PrototypesModel model_{{3}};
  TrainState state_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_{state_, model_, nullptr, *communicator_, metrics_, stop_, nullptr};
};

TEST_F(SwavMethodTest, Step_SetsAFiniteLossWithItsGraph) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  ASSERT_OK(Step(method, 0.0));
  context_.loss.backward();
  EXPECT_TRUE(model_.Parameters()[0].value.grad().isfinite().all().item<bool>());
  EXPECT_EQ(method.iteration(), 1);
}

TEST_F(SwavMethodTest, Evaluation_LeavesIterationAndQueueAlone) {
  options_.queue.queue_length = 8;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor before = StateOf(method, "queue_embeddings");
  state_.training = false;
  ASSERT_OK(Step(method, 0.0));
  EXPECT_EQ(method.iteration(), 0);
  EXPECT_FALSE(method.uses_queue());
  EXPECT_TRUE(at::equal(StateOf(method, "queue_embeddings"), before));
}

TEST_F(SwavMethodTest, LossOfABatchAgain_IsTheSame) {
  options_.queue.queue_length = 4;
  options_.queue.start_iter = 1;
  options_.temp_hard_assignment_iters = 1;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  for (const double phase : {0.0, 1.0, 2.0}) {
    ASSERT_OK_AND_ASSIGN(const uint32_t before, HashState(method));
    context_.outputs = model_.Forward({Wave({2 * kBatch, kDim}, phase)});
    ASSERT_OK(method.ComputeLoss(context_));
    const at::Tensor loss = context_.loss.clone();
    ASSERT_OK(method.ComputeLoss(context_));
    EXPECT_TRUE(at::equal(context_.loss, loss)) << phase;
    EXPECT_EQ(HashState(method).value(), before) << "only Advance moves the queue and counts";
    ASSERT_OK(method.Advance(context_));
  }
}

TEST_F(SwavMethodTest, Queue_HoldsTheNewestEmbeddingsFirst) {
  options_.queue.queue_length = 10;  // rounded down to 8
  options_.crops_for_assign = {1};
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  ASSERT_EQ(StateOf(method, "queue_embeddings").sizes(), at::IntArrayRef({1, 8, kDim}));
  for (const double phase : {1.0, 2.0, 3.0}) ASSERT_OK(Step(method, phase));
  const at::Tensor queue = StateOf(method, "queue_embeddings")[0];
  EXPECT_TRUE(at::equal(queue.narrow(0, 0, 4), Wave({8, kDim}, 3.0).narrow(0, 4, 4)));
  EXPECT_TRUE(at::equal(queue.narrow(0, 4, 4), Wave({8, kDim}, 2.0).narrow(0, 4, 4)));
}

TEST_F(SwavMethodTest, QueueScores_AreRecomputedFromTheSecondStepWithTheQueue) {
  options_.queue.queue_length = 4;
  options_.queue.start_iter = 1;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor initial = StateOf(method, "queue_scores0");
  for (const bool used : {false, true}) {
    ASSERT_OK(Step(method, 1.0));
    EXPECT_EQ(method.uses_queue(), used);
    EXPECT_TRUE(at::equal(StateOf(method, "queue_scores0"), initial));
  }
  const at::Tensor embeddings = StateOf(method, "queue_embeddings");
  ASSERT_OK(Step(method, 2.0));
  EXPECT_TRUE(
      at::equal(StateOf(method, "queue_scores0"), at::linear(embeddings, model_.Parameters()[0].value.detach())));
}

TEST_F(SwavMethodTest, QueueScores_AreTheSameUnderAutocast) {
  options_.queue.queue_length = 4;
  std::vector<at::Tensor> scores;
  for (const Autocast autocast : {Autocast::kOff, Autocast::kBFloat16, Autocast::kFloat16}) {
    SwavMethod method(options_, 0);
    ASSERT_OK(method.Prepare(context_));
    ASSERT_OK(Step(method, 1.0));
    const AutocastScope scope(autocast);
    method.UpdateQueueScores();
    scores.push_back(StateOf(method, "queue_scores0"));
  }
  EXPECT_EQ(scores[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(scores[1], scores[0]));
  EXPECT_TRUE(at::equal(scores[2], scores[0]));
}

TEST_F(SwavMethodTest, RecordingKey_StaysWhileUpdatesComputeAlike) {
  options_.queue.queue_length = 8;
  options_.queue.start_iter = 3;
  options_.temp_hard_assignment_iters = 1;
  for (const int64_t batches : {1, 2}) {
    SCOPED_TRACE(batches);
    SwavMethod method(options_, 0);
    ASSERT_OK(method.Prepare(context_));
    context_.batches_per_update = batches;
    std::vector<int64_t> keys;
    for (int64_t update = 0; update < 8; ++update) {
      keys.push_back(method.RecordingKey(context_).value());
      for (int64_t batch = 0; batch < batches; ++batch) ASSERT_OK(Step(method, static_cast<double>(update)));
    }
    const std::set<int64_t> different(keys.begin(), keys.end());
    // Of one batch: hard; soft; with the queue; with its scores, from then on. Of two, of which the queue begins with
    // the fourth: hard and soft; soft, then with the queue; with its scores.
    EXPECT_THAT(different, SizeIs(batches == 1 ? 4u : 3u));
    EXPECT_THAT(std::vector<int64_t>(keys.begin() + 4, keys.end()), Each(keys[4]));
  }
}

// A recorded update calls Advance on no batch.
TEST_F(SwavMethodTest, UpdatesWithoutAdvance_AreCounted) {
  options_.queue.queue_length = 8;
  options_.queue.start_iter = 3;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  context_.batches_per_update = 2;
  for (const int64_t iteration : {2, 4}) {
    for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnBatchStart(context_));
    for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnStep(context_));
    EXPECT_EQ(method.iteration(), iteration);
    EXPECT_EQ(method.uses_queue(), iteration == 4);
  }
  for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnBatchStart(context_));
  ASSERT_OK(Step(method, 0.0));
  ASSERT_OK(Step(method, 1.0));
  for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnStep(context_));
  EXPECT_EQ(method.iteration(), 6) << "each batch once";
}

TEST_F(SwavMethodTest, Queue_KeepsItsMemory) {
  options_.queue.queue_length = 8;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  const auto addresses = [&] {
    std::vector<const void*> found;
    const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(method);
    EXPECT_OK(state);
    for (const NamedTensor& entry : state.ok() ? *state : std::vector<NamedTensor>()) {
      if (entry.name.find("queue_") == 0) found.push_back(entry.tensor.const_data_ptr());
    }
    return found;
  };
  const std::vector<const void*> before = addresses();
  EXPECT_THAT(before, SizeIs(2));
  for (const double phase : {0.0, 1.0, 2.0}) ASSERT_OK(Step(method, phase));
  EXPECT_EQ(addresses(), before);
}

TEST_F(SwavMethodTest, QueueShorterThanABatch_IsNoQueueAndAWarning) {
  options_.queue.queue_length = 3;
  const CapturedLog log;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  EXPECT_FALSE(StateOf(method, "queue_embeddings").defined());
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("queue.queue_length is 3, less than the 4 images"));
}

TEST_F(SwavMethodTest, State_ContinuesInAnotherMethodBitwise) {
  options_.queue.queue_length = 8;
  SwavMethod first(options_, 0);
  SwavMethod second(options_, 99);
  ASSERT_OK(first.Prepare(context_));
  ASSERT_OK(second.Prepare(context_));
  for (const double phase : {1.0, 2.0}) ASSERT_OK(Step(first, phase));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(first));
  ASSERT_OK(RestoreState(second, state, "test"));
  ASSERT_OK(Step(first, 3.0));
  const at::Tensor expected = context_.loss.clone();
  ASSERT_OK(Step(second, 3.0));
  EXPECT_TRUE(at::equal(context_.loss, expected));
  EXPECT_EQ(HashState(first).value(), HashState(second).value());
}

TEST_F(SwavMethodTest, InitialQueue_DependsOnTheSeed) {
  options_.queue.queue_length = 8;
  std::vector<at::Tensor> queues;
  for (const int64_t seed : {1, 1, 2}) {
    SwavMethod method(options_, seed);
    ASSERT_OK(method.Prepare(context_));
    queues.push_back(StateOf(method, "queue_embeddings"));
  }
  EXPECT_TRUE(at::equal(queues[0], queues[1]));
  EXPECT_FALSE(at::equal(queues[0], queues[2]));
}

TEST_F(SwavMethodTest, NormalizePrototypes_MakesRowsUnitLengthAfterTheUpdate) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor weight = model_.Parameters()[0].value;
  EXPECT_FALSE(at::allclose(weight.pow(2).sum(1), at::ones({3})));
  for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnUpdate(context_));
  EXPECT_TRUE(at::allclose(weight.pow(2).sum(1), at::ones({3})));
  EXPECT_TRUE(weight.requires_grad());
}

TEST_F(SwavMethodTest, NormalizationCanBeTurnedOff) {
  options_.normalize_last_layer = false;
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor before = model_.Parameters()[0].value.detach().clone();
  for (const auto& hook : method.MakeHooks()) ASSERT_OK(hook->OnUpdate(context_));
  EXPECT_TRUE(at::equal(model_.Parameters()[0].value, before));
}

TEST_F(SwavMethodTest, Hooks_HaveNamesAndChangeTheModelBeforeOthersObserve) {
  SwavMethod method(options_, 0);
  std::vector<std::string> names;
  for (const auto& hook : method.MakeHooks()) names.emplace_back(hook->name());
  EXPECT_THAT(names, ElementsAre("swav_queue", "normalize_prototypes", "swav_failure_report"));
  EXPECT_EQ(method.MakeHooks()[1]->stage(), HookStage::kMutate);
}

TEST_F(SwavMethodTest, MorePrototypesThanRows_WarnWithBothNumbersAndKeys) {
  PrototypesModel model({40});
  StepContext context{state_, model, nullptr, *communicator_, metrics_, stop_, nullptr};
  context.batch_size = kBatch;
  options_.num_prototypes = {40};
  const CapturedLog log;
  ASSERT_OK(SwavMethod(options_, 0).Prepare(context));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("num_prototypes is 40, but only 4 images"));
  EXPECT_THAT(log.lines[0], HasSubstr("BATCHSIZE_PER_REPLICA 4 x 1 ranks"));
  EXPECT_THAT(log.lines[0], HasSubstr("queue.queue_length of at least 36"));
}

TEST_F(SwavMethodTest, EnoughRows_DoNotWarn) {
  const CapturedLog log;
  ASSERT_OK(SwavMethod(options_, 0).Prepare(context_));
  EXPECT_THAT(log.lines, IsEmpty());
}

TEST_F(SwavMethodTest, ModelWithoutPrototypes_IsRefused) {
  options_.num_prototypes = {3, 3};
  EXPECT_THAT(SwavMethod(options_, 0).Prepare(context_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'...prototypes1.weight'")));
}

TEST_F(SwavMethodTest, OtherNumberOfPrototypes_IsRefusedWithBothNumbers) {
  options_.num_prototypes = {5};
  EXPECT_THAT(SwavMethod(options_, 0).Prepare(context_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("num_prototypes[0] is 5")));
}

TEST_F(SwavMethodTest, OutputsOfAnotherHead_AreRefused) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  context_.outputs = {at::ones({8, kDim})};
  EXPECT_THAT(method.ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model returned 1 outputs")));
  context_.outputs = {at::ones({8, kDim + 1}), at::ones({8, 3})};
  EXPECT_THAT(method.ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("embeddings have shape [8, 4]")));
}

TEST_F(SwavMethodTest, OtherNumberOfViews_IsRefused) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  Batch batch;
  batch.views.resize(3);
  context_.batch = &batch;
  context_.outputs = {at::ones({8, kDim}), at::ones({8, 3})};
  EXPECT_THAT(method.ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("batch has 3 views")));
}

TEST_F(SwavMethodTest, NanInOneCrop_IsReportedByItsNumber) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  at::Tensor embeddings = Wave({2 * kBatch, kDim}, 0.0);
  embeddings[5].fill_(std::numeric_limits<float>::quiet_NaN());  // crop 1
  context_.outputs = model_.Forward({embeddings});
  ASSERT_OK(method.ComputeLoss(context_));
  const CapturedLog log;
  ASSERT_OK(method.MakeHooks()[2]->OnException(context_, absl::OutOfRangeError("loss is NaN")));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("scores of crop 1, head 0: 3 of 12 values are not finite"));
  EXPECT_THAT(log.lines[0], Not(HasSubstr("scores of crop 0")));
}

TEST_F(SwavMethodTest, FailureForAnotherReason_ReportsNothing) {
  SwavMethod method(options_, 0);
  ASSERT_OK(method.Prepare(context_));
  ASSERT_OK(Step(method, 0.0));
  const CapturedLog log;
  ASSERT_OK(method.MakeHooks()[2]->OnException(context_, absl::UnavailableError("disk")));
  EXPECT_THAT(log.lines, IsEmpty());
}

}  // namespace
}  // namespace ssl
