// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <memory>
#include <string>
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
#include "ssl/losses/info_nce.h"
#include "ssl/methods/testing/head_model.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
class SimclrMethodTest : public ::testing::Test {
 protected:
  static SimclrMethod MakeSimclr() { return {"simclr_info_nce_loss", {2, 0.1, true}, kDim}; }
  static SimclrMethod MakeMulticrop() { return {"multicrop_simclr_info_nce_loss", {3, 0.1, false}, kDim}; }

  // What a run gives the method before training, and with a batch.
  StepContext MakeContext(Communicator& communicator, int64_t batch_size) {
    StepContext context{state_, model_, nullptr, communicator, metrics_, stop_, nullptr};
    context.batch_size = batch_size;
    return context;
  }
  absl::Status Step(SimclrMethod& method, int64_t num_views, const at::Tensor& embeddings) {
    batch_.views.resize(num_views);
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

TEST_F(SimclrMethodTest, Step_SetsTheLossWithItsGraph) {
  SimclrMethod method = MakeSimclr();
  ASSERT_OK(method.Prepare(context_));
  const at::Tensor embeddings = Wave(8, 0.3).requires_grad_();
  ASSERT_OK(Step(method, 2, embeddings));
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, InfoNce(embeddings, {2, 0.1, true}, *communicator_));
  EXPECT_TRUE(at::equal(context_.loss, expected));
  context_.loss.backward();
  EXPECT_TRUE(embeddings.grad().isfinite().all().item<bool>());
}

TEST_F(SimclrMethodTest, Crops_AreComparedOnTheOwnRank) {
  SimclrMethod method = MakeMulticrop();
  ASSERT_OK(method.Prepare(context_));
  ASSERT_OK(Step(method, 3, Wave(12, 0.3)));
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, InfoNce(Wave(12, 0.3), {3, 0.1, false}, *communicator_));
  EXPECT_TRUE(at::equal(context_.loss, expected));
}

TEST_F(SimclrMethodTest, ThereIsNoState_NeitherVisitedNorHidden) {
  SimclrMethod used = MakeSimclr();
  SimclrMethod fresh = MakeSimclr();
  for (SimclrMethod* method : {&used, &fresh}) ASSERT_OK(method->Prepare(context_));
  for (const int64_t batch : {4, 2, 7}) ASSERT_OK(Step(used, 2, Wave(2 * batch, 1.0)));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(used));
  EXPECT_THAT(state, IsEmpty());

  // A run that goes on from a checkpoint has a fresh method.
  ASSERT_OK(Step(used, 2, Wave(8, 2.0)));
  const at::Tensor expected = context_.loss.clone();
  ASSERT_OK(Step(fresh, 2, Wave(8, 2.0)));
  EXPECT_TRUE(at::equal(context_.loss, expected));
}

TEST_F(SimclrMethodTest, OneImage_IsRefusedWhereNobodyElseIsCompared) {
  context_.batch_size = 1;
  EXPECT_THAT(
      MakeSimclr().Prepare(context_),
      StatusIs(kInvalid,
               HasSubstr("BATCHSIZE_PER_REPLICA is 1, the images to tell apart on 1 rank; expected at least 2")));
  ThreadWorld world(2, absl::Seconds(60));
  EXPECT_OK(world.Run([this](Communicator& communicator) {
    StepContext context = MakeContext(communicator, 1);
    EXPECT_THAT(MakeMulticrop().Prepare(context), HasCode(kInvalid)) << "crops know the own rank only";
    return MakeSimclr().Prepare(context);
  }));
}

TEST_F(SimclrMethodTest, HeadOfAnotherWidth_IsRefusedBeforeTraining) {
  SimclrMethod method("simclr_info_nce_loss", {2, 0.1, true}, 128);
  EXPECT_THAT(method.Prepare(context_),
              StatusIs(kInvalid, HasSubstr("config.LOSS.simclr_info_nce_loss.buffer_params.embedding_dim is 128, but "
                                           "the last layer of the heads, heads.0.clf.0.weight, gives 3")));
}

TEST_F(SimclrMethodTest, OtherViews_AreRefused) {
  SimclrMethod simclr = MakeSimclr();
  SimclrMethod multicrop = MakeMulticrop();
  EXPECT_THAT(Step(simclr, 4, Wave(8, 0.3)), StatusIs(kInvalid, HasSubstr("batch has 4 views")));
  EXPECT_THAT(Step(multicrop, 2, Wave(8, 0.3)),
              StatusIs(kInvalid, HasSubstr("batch has 2 views, multicrop_simclr_info_nce_loss expects 3")));
}

}  // namespace
}  // namespace ssl
