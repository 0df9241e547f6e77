// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/metrics.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/methods/moco/batch_order.h"
#include "ssl/methods/moco/moco_options.h"
#include "ssl/methods/moco/testing/perceptron.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 4;
constexpr int64_t kDim = 5;
const std::vector<int64_t> kDims = {6, 10, kDim};

at::Tensor Wave(double phase) { return at::sin(at::arange(kBatch * 6, at::kFloat) * 0.9 + phase).reshape({kBatch, 6}); }

at::Tensor Unit(const at::Tensor& rows) { return rows / rows.norm(2, 1, /*keepdim=*/true); }

MocoOptions SmallOptions() {
  MocoOptions options;
  options.embedding_dim = kDim;
  options.queue_size = 8;
  options.momentum = 0.9;
  return options;
}

// One rank's run of a method.
struct RankRun {
  explicit RankRun(Communicator& communicator) : context{state, model, nullptr, communicator, metrics, stop, nullptr} {
    context.batch_size = kBatch;
    context.batch = &batch;
    state.phase_index = 0;
  }

  std::unique_ptr<MocoMethod> Make(const MocoOptions& options, int64_t encoder_seed = 2, int64_t seed = 0) {
    auto made = std::make_unique<Perceptron>(kDims, /*use_batch_norm=*/true, encoder_seed);
    encoder = made.get();
    return std::make_unique<MocoMethod>(options, std::move(made), /*shuffle_batch=*/true, seed);
  }

  // Forward pass and loss on views that depend on `phase`, then what a trainer advances. passes: how often the batch
  // goes through.
  absl::Status Step(MocoMethod& method, double phase, int passes = 1) {
    batch.views = {Wave(phase), Wave(phase + 0.3)};
    for (int pass = 0; pass < passes; ++pass) {
      SSL_RETURN_IF_ERROR(method.Forward(context));
      SSL_RETURN_IF_ERROR(method.ComputeLoss(context));
    }
    if (state.training) SSL_RETURN_IF_ERROR(method.Advance(context));
    ++state.batch_in_phase;
    if (state.training && context.batch_in_update + 1 == context.batches_per_update) ++state.iteration;
    return absl::OkStatus();
  }

  Perceptron model{kDims, /*use_batch_norm=*/true, /*seed=*/1};
  Perceptron* encoder = nullptr;
  TrainState state;
  MetricStore metrics;
  StopToken stop;
  Batch batch;
  StepContext context;
};

at::Tensor StateOf(MocoMethod& method, const std::string& name) {
  const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(method);
  if (!state.ok()) return at::Tensor();
  for (const NamedTensor& entry : *state) {
    if (entry.name == name) return entry.tensor.clone();
  }
  return at::Tensor();
}

class MocoMethodTest : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  RankRun run_{*communicator_};
};

TEST_F(MocoMethodTest, FirstStep_CopiesParametersAsTheyAreThenButNoStatistics) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  {
    const at::NoGradGuard no_grad;
    run_.model.Get("0.weight").mul_(1.5);
    run_.model.Get("1.running_mean").fill_(7.0);
  }
  ASSERT_OK(run_.Step(*method, 0.0));
  for (const NamedParameter& parameter : run_.model.Parameters()) {
    EXPECT_TRUE(at::equal(run_.encoder->Get(parameter.name), parameter.value)) << parameter.name;
  }
  EXPECT_LT(run_.encoder->Get("1.running_mean").abs().max().item<double>(), 1.0);
}

TEST_F(MocoMethodTest, ParametersThatDoNotTrain_AreCopiedToo) {
  run_.model.Get("3.bias").requires_grad_(false);
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  run_.encoder->Get("3.bias").requires_grad_(false);
  ASSERT_OK(method->Prepare(run_.context));
  ASSERT_OK(run_.Step(*method, 0.0));
  EXPECT_TRUE(at::equal(run_.encoder->Get("3.bias"), run_.model.Get("3.bias")));
}

TEST_F(MocoMethodTest, SeveralPassesOverABatch_CountOnce) {
  // The encoder of the last one has the parameters and the queue of the first one; its batch statistics, which it does
  // not use, see each pass.
  const std::vector<int> passes = {1, 2};
  std::vector<at::Tensor> losses, queues, weights;
  for (const int count : passes) {
    RankRun run(*communicator_);
    const std::unique_ptr<MocoMethod> method = run.Make(SmallOptions());
    ASSERT_OK(method->Prepare(run.context));
    ASSERT_OK(run.Step(*method, 0.0, count));
    {
      const at::NoGradGuard no_grad;
      run.model.Get("0.weight").add_(0.5);
    }
    ASSERT_OK(run.Step(*method, 1.0, count));
    losses.push_back(run.context.loss.detach());
    queues.push_back(StateOf(*method, "queue"));
    weights.push_back(run.encoder->Get("0.weight").clone());
  }
  EXPECT_TRUE(at::equal(losses[1], losses[0]));
  EXPECT_TRUE(at::equal(queues[1], queues[0]));
  EXPECT_TRUE(at::equal(weights[1], weights[0]));
}

TEST_F(MocoMethodTest, LaterSteps_MoveTheEncoderBeforeItMakesKeys) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  ASSERT_OK(run_.Step(*method, 0.0));
  Perceptron expected(kDims, /*use_batch_norm=*/true, /*seed=*/1);
  const at::NoGradGuard no_grad;
  run_.model.Get("0.weight").add_(0.5);
  const at::Tensor weight = expected.Get("0.weight") * 0.9 + run_.model.Get("0.weight") * 0.1;
  expected.Get("0.weight").copy_(weight);
  ASSERT_OK(run_.Step(*method, 1.0));
  EXPECT_TRUE(at::allclose(run_.encoder->Get("0.weight"), weight));
  const at::Tensor keys = Unit(expected.Forward({Wave(1.3)})[0]);
  EXPECT_TRUE(at::allclose(StateOf(*method, "queue").narrow(0, kBatch, kBatch), keys, 1e-5, 1e-6));
}

TEST_F(MocoMethodTest, BatchesOfOneUpdate_MoveTheEncoderOnce) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  ASSERT_OK(run_.Step(*method, 0.0));
  const at::NoGradGuard no_grad;
  const at::Tensor before = run_.encoder->Get("0.weight").clone();
  run_.model.Get("0.weight").add_(0.5);
  const at::Tensor once = before * 0.9 + run_.model.Get("0.weight") * 0.1;
  run_.context.batches_per_update = 2;
  for (run_.context.batch_in_update = 0; run_.context.batch_in_update < 2; ++run_.context.batch_in_update) {
    ASSERT_OK(run_.Step(*method, 1.0));
    EXPECT_TRUE(at::allclose(run_.encoder->Get("0.weight"), once));
  }
  EXPECT_EQ(StateOf(*method, "queue_ptr").item<int64_t>(), 3 * kBatch % 8);
}

TEST_F(MocoMethodTest, Step_TrainsTheModelAndNotTheEncoder) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  ASSERT_OK(run_.Step(*method, 0.0));
  run_.context.loss.backward();
  EXPECT_GT(run_.model.Get("0.weight").grad().abs().max().item<double>(), 0.0);
  EXPECT_FALSE(run_.encoder->Get("0.weight").requires_grad());
  EXPECT_FALSE(run_.encoder->Get("0.weight").grad().defined());
}

TEST_F(MocoMethodTest, LossUsesTheQueueBeforeItsOwnKeysEnterIt) {
  MocoOptions options = SmallOptions();
  options.queue_size = kBatch;  // every step replaces the whole queue
  const std::unique_ptr<MocoMethod> method = run_.Make(options);
  ASSERT_OK(method->Prepare(run_.context));
  const at::Tensor before = StateOf(*method, "queue");
  ASSERT_OK(run_.Step(*method, 0.0));
  const at::Tensor query = Unit(run_.context.outputs[0].detach());
  const at::Tensor keys = StateOf(*method, "queue");
  const at::Tensor logits = at::cat({(query * keys).sum(1, true), query.matmul(before.t())}, 1) / options.temperature;
  EXPECT_NEAR(run_.context.loss.item<double>(), -logits.log_softmax(1).select(1, 0).mean().item<double>(), 1e-5);
}

TEST_F(MocoMethodTest, Evaluation_MovesNeitherQueueNorParameters) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  ASSERT_OK(run_.Step(*method, 0.0));
  const at::NoGradGuard no_grad;
  run_.model.Get("0.weight").add_(0.5);
  const at::Tensor weight = run_.encoder->Get("0.weight").clone();
  const at::Tensor queue = StateOf(*method, "queue");
  run_.state.training = false;
  run_.model.SetTraining(false);
  ASSERT_OK(run_.Step(*method, 1.0));
  EXPECT_TRUE(run_.context.loss.isfinite().item<bool>());
  EXPECT_TRUE(at::equal(run_.encoder->Get("0.weight"), weight));
  EXPECT_TRUE(at::equal(StateOf(*method, "queue"), queue));
  EXPECT_EQ(StateOf(*method, "queue_ptr").item<int64_t>(), kBatch);
}

TEST_F(MocoMethodTest, RecordingKey_IsAnotherOneInTheFirstUpdate) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  std::vector<std::optional<int64_t>> keys;
  for (int update = 0; update < 4; ++update) {
    keys.push_back(method->RecordingKey(run_.context));
    ASSERT_OK(run_.Step(*method, update));
  }
  EXPECT_THAT(keys, ElementsAre(0, 1, 1, 1));
}

TEST_F(MocoMethodTest, State_ContinuesInAnotherMethodBitwise) {
  RankRun other(*communicator_);
  const std::unique_ptr<MocoMethod> first = run_.Make(SmallOptions());
  const std::unique_ptr<MocoMethod> second = other.Make(SmallOptions(), /*encoder_seed=*/9, /*seed=*/99);
  ASSERT_OK(first->Prepare(run_.context));
  ASSERT_OK(second->Prepare(other.context));
  for (const double phase : {0.0, 1.0, 2.0}) ASSERT_OK(run_.Step(*first, phase));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*first));
  ASSERT_OK(RestoreState(*second, state, "test"));
  other.state = run_.state;
  const at::NoGradGuard no_grad;
  for (RankRun* run : {&run_, &other}) run->model.Get("0.weight").fill_(0.25);
  ASSERT_OK(run_.Step(*first, 3.0));
  ASSERT_OK(other.Step(*second, 3.0));
  EXPECT_TRUE(at::equal(run_.context.loss, other.context.loss));
  EXPECT_EQ(HashState(*first).value(), HashState(*second).value());
}

TEST_F(MocoMethodTest, State_HasTheEncoderWithItsBuffersAndTheQueue) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  for (const char* name : {"encoder/0.weight", "encoder/1.running_mean", "queue", "queue_ptr"}) {
    EXPECT_TRUE(StateOf(*method, name).defined()) << name;
  }
}

TEST_F(MocoMethodTest, QueueThatHoldsNoWholeBatches_IsRefusedWithAllNumbers) {
  MocoOptions options = SmallOptions();
  options.queue_size = 10;
  EXPECT_THAT(
      run_.Make(options)->Prepare(run_.context),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "config.LOSS.moco_loss.queue_size is 10, expected a multiple of 4, the images of a batch over all "
               "ranks (config.DATA.TRAIN.BATCHSIZE_PER_REPLICA 4 x 1 ranks)"));
}

TEST_F(MocoMethodTest, FrozenModel_IsRefused) {
  for (const NamedParameter& parameter : run_.model.Parameters()) parameter.value.requires_grad_(false);
  EXPECT_THAT(run_.Make(SmallOptions())->Prepare(run_.context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no trainable parameter")));
}

TEST_F(MocoMethodTest, OtherNumberOfViews_IsRefusedWithTheSplit) {
  const std::unique_ptr<MocoMethod> method = run_.Make(SmallOptions());
  ASSERT_OK(method->Prepare(run_.context));
  run_.batch.views = {Wave(0.0)};
  EXPECT_THAT(method->Forward(run_.context),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "batch has 1 views, moco_loss expects 2: query and key (config.DATA.TRAIN.COLLATE_FUNCTION "
                       "moco_collator)"));
  run_.state.training = false;
  EXPECT_THAT(method->Forward(run_.context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TEST.COLLATE_FUNCTION")));
}

TEST_F(MocoMethodTest, EmbeddingsOfAnotherWidth_AreRefusedWithBoth) {
  MocoOptions options = SmallOptions();
  options.embedding_dim = 7;
  const std::unique_ptr<MocoMethod> method = run_.Make(options);
  ASSERT_OK(method->Prepare(run_.context));
  run_.batch.indices = at::arange(kBatch);
  EXPECT_THAT(run_.Step(*method, 0.0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "embeddings have shape [4, 5], expected [4, 7] (config.LOSS.moco_loss.embedding_dim)"));
}

// What two ranks should have as keys when each normalises its part of the common order.
at::Tensor ShuffledKeys(const std::vector<at::Tensor>& views, int64_t seed) {
  const at::NoGradGuard no_grad;
  Perceptron encoder(kDims, /*use_batch_norm=*/true, /*seed=*/1);
  const at::Tensor images = at::cat(views);
  const at::Tensor order = BatchOrder(images.size(0), seed, /*phase=*/0, /*batch=*/0);
  at::Tensor keys = at::zeros({images.size(0), kDim});
  for (const at::Tensor& own : order.chunk(2)) {
    const at::Tensor encoded = Unit(encoder.Forward({images.index_select(0, own)})[0]);
    for (int64_t i = 0; i < own.size(0); ++i) keys[own[i].item<int64_t>()].copy_(encoded[i]);
  }
  return keys;
}

TEST(MocoRanks, ImagesAreExchangedForTheirKeysAndKeysComeBackInPlace) {
  constexpr int64_t kSeed = 11;
  std::vector<at::Tensor> queues(2);
  std::vector<at::Tensor> losses(2);
  std::vector<at::Tensor> queries(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    RankRun run(communicator);
    const std::unique_ptr<MocoMethod> method = run.Make(SmallOptions(), /*encoder_seed=*/2, kSeed);
    SSL_RETURN_IF_ERROR(method->Prepare(run.context));
    SSL_RETURN_IF_ERROR(run.Step(*method, 2.0 * static_cast<double>(communicator.rank())));
    queues[communicator.rank()] = StateOf(*method, "queue");
    queries[communicator.rank()] = Unit(run.context.outputs[0].detach());
    losses[communicator.rank()] = run.context.loss.detach();
    return absl::OkStatus();
  }));
  EXPECT_TRUE(at::equal(queues[0], queues[1]));
  const at::Tensor expected = ShuffledKeys({Wave(0.3), Wave(2.3)}, kSeed);
  EXPECT_TRUE(at::allclose(queues[0], expected, 1e-5, 1e-6));

  KeyQueue initial;
  initial.Initialize(8, kDim, kSeed, at::kCPU);
  for (int64_t rank = 0; rank < 2; ++rank) {
    const at::Tensor keys = expected.narrow(0, rank * kBatch, kBatch);
    const at::Tensor own = (queries[rank] * keys).sum(1, true);
    const at::Tensor logits = at::cat({own, queries[rank].matmul(initial.rows().t())}, 1) / 0.2;
    EXPECT_NEAR(losses[rank].item<double>(), -logits.log_softmax(1).select(1, 0).mean().item<double>(), 1e-5) << rank;
  }
}

TEST(MocoRanks, RecordingKey_IsThereWithoutTheExchange) {
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    RankRun run(communicator);
    for (const bool shuffles : {true, false}) {
      const MocoMethod method(SmallOptions(), nullptr, shuffles, /*seed=*/0);
      EXPECT_EQ(method.RecordingKey(run.context).has_value(), !shuffles);
    }
    return absl::OkStatus();
  }));
}

TEST(MocoRanks, WithoutTheExchange_EachRankNormalisesItsOwnImages) {
  std::vector<at::Tensor> queues(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    RankRun run(communicator);
    MocoMethod method(SmallOptions(), std::make_unique<Perceptron>(kDims, true, 2), /*shuffle_batch=*/false, 11);
    SSL_RETURN_IF_ERROR(method.Prepare(run.context));
    SSL_RETURN_IF_ERROR(run.Step(method, 2.0 * static_cast<double>(communicator.rank())));
    queues[communicator.rank()] = StateOf(method, "queue");
    return absl::OkStatus();
  }));
  const at::NoGradGuard no_grad;
  Perceptron encoder(kDims, /*use_batch_norm=*/true, /*seed=*/1);
  const at::Tensor expected = at::cat({Unit(encoder.Forward({Wave(0.3)})[0]), Unit(encoder.Forward({Wave(2.3)})[0])});
  for (const at::Tensor& queue : queues) EXPECT_TRUE(at::allclose(queue, expected, 1e-5, 1e-6));
}

TEST(MocoRanks, QueueSizeCountsTheImagesOfAllRanks) {
  MocoOptions options = SmallOptions();
  options.queue_size = 12;  // three batches of one rank
  EXPECT_THAT(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    RankRun run(communicator);
    return run.Make(options)->Prepare(run.context);
  }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is 12, expected a multiple of 8")));
}

}  // namespace
}  // namespace ssl
