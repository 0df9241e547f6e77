// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/barlow_twins/barlow_twins_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/losses/barlow_twins_loss.h"
#include "ssl/methods/testing/head_model.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
class BarlowTwinsMethodTest : public ::testing::Test {
 protected:
  StepContext MakeContext(Communicator& communicator, int64_t batch_size) {
    StepContext context{state_, model_, nullptr, communicator, metrics_, stop_, nullptr};
    context.batch_size = batch_size;
    return context;
  }
  absl::Status Step(BarlowTwinsMethod& method, const at::Tensor& embeddings) {
    batch_.views.resize(2);
    context_.batch = &batch_;
    context_.outputs = {embeddings};
    return method.ComputeLoss(context_);
  }

  HeadModel model_;
  Batch batch_;
  TrainState state_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_ = MakeContext(*communicator_, 4);
};

TEST_F(BarlowTwinsMethodTest, Step_SetsTheLossWithItsGraph) {
  const BarlowTwinsLossOptions options{0.3, 0.5};
  BarlowTwinsMethod method(options, kDim);
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor embeddings = Wave(8, 0.3).requires_grad_();
  ASSERT_OK(Step(method, embeddings));
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, BarlowTwinsLoss(embeddings, options, *communicator_));
  EXPECT_TRUE(at::equal(context_.loss, expected));
  context_.loss.backward();
  EXPECT_TRUE(embeddings.grad().isfinite().all().item<bool>());
}

TEST_F(BarlowTwinsMethodTest, ThereIsNoState_NeitherVisitedNorHidden) {
  BarlowTwinsMethod used({}, kDim);
  BarlowTwinsMethod fresh({}, kDim);
  for (BarlowTwinsMethod* method : {&used, &fresh}) ASSERT_OK(method->Prepare(context_));
  for (const int64_t batch : {4, 2, 7}) ASSERT_OK(Step(used, Wave(2 * batch, 1.0)));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(used));
  EXPECT_THAT(state, IsEmpty());

  // A run that goes on from a checkpoint has a fresh method.
  ASSERT_OK(Step(used, Wave(8, 2.0)));
  const at::Tensor expected = context_.loss.clone();
  ASSERT_OK(Step(fresh, Wave(8, 2.0)));
  EXPECT_TRUE(at::equal(context_.loss, expected));
}

TEST_F(BarlowTwinsMethodTest, OneImage_IsRefusedWithTheRanks) {
  context_.batch_size = 1;
  BarlowTwinsMethod method({}, kDim);
  EXPECT_THAT(method.Prepare(context_), StatusIs(kInvalid, HasSubstr("BATCHSIZE_PER_REPLICA is 1 on 1 ranks")));
  ThreadWorld world(2, absl::Seconds(60));
  EXPECT_OK(world.Run([this](Communicator& communicator) {
    StepContext context = MakeContext(communicator, 1);
    return BarlowTwinsMethod({}, kDim).Prepare(context);
  }));
}

TEST_F(BarlowTwinsMethodTest, HeadOfAnotherWidth_IsRefusedBeforeTraining) {
  BarlowTwinsMethod method({}, 8192);
  EXPECT_THAT(method.Prepare(context_),
              StatusIs(kInvalid, HasSubstr("config.LOSS.barlow_twins_loss.embedding_dim is 8192, but the last layer of "
                                           "the heads, heads.0.clf.0.weight, gives 3")));
}

TEST_F(BarlowTwinsMethodTest, OtherViews_AreRefused) {
  BarlowTwinsMethod method({}, kDim);
  Batch batch;
  batch.views.resize(4);
  context_.batch = &batch;
  context_.outputs = {Wave(8, 0.3)};
  EXPECT_THAT(method.ComputeLoss(context_), StatusIs(kInvalid, HasSubstr("batch has 4 views")));
}

}  // namespace
}  // namespace ssl
