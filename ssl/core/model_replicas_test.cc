// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/model_replicas.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A weight, and buffers of several types that follow what it sees. What it begins with depends on the rank.
class BufferedModel : public Model {
 public:
  explicit BufferedModel(int64_t rank)
      : weight_(at::full({3, 16}, 0.1 + rank, at::kFloat).requires_grad_(true)),
        mean_(at::full({5, 3}, rank + 0.5, at::kFloat).t()),
        count_(at::full({}, rank + 7, at::kLong)),
        flags_(at::full({3}, rank == 0, at::kBool)),
        short_(at::full({2}, rank + 0.25, at::kBFloat16)) {}

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    seen_means.push_back(mean_[0][0].item<float>());
    if (training_) {
      mean_.add_(views[0].mean());
      count_.add_(1);
    }
    return {views[0].flatten(1).matmul(weight_.t()).repeat({2, 1})};
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {{"weight", weight_, false}}; }
  void SetTraining(bool training) override { training_ = training; }
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight_);
    visitor.Tensor("mean", mean_);
    visitor.Tensor("count", count_);
    visitor.Tensor("flags", flags_);
    visitor.Tensor("short", short_);
  }

  at::Tensor& mean() { return mean_; }
  at::Tensor& weight() { return weight_; }
  std::vector<float> seen_means;  // of each forward pass, when it began

 private:
  at::Tensor weight_;
  at::Tensor mean_;  // not contiguous
  at::Tensor count_;
  at::Tensor flags_;
  at::Tensor short_;
  bool training_ = true;
};

uint32_t Hash(Model& model) { return *HashState(model); }

absl::Status InThreads(int64_t ranks, const std::function<absl::Status(Communicator&)>& rank_main) {
  return ThreadWorld(ranks, absl::Seconds(30)).Run(rank_main);
}

TEST(ModelReplicas, CopyFromRankZero_TakesParametersAndBuffers) {
  BufferedModel of_rank_zero(0);
  EXPECT_OK(InThreads(3, [&](Communicator& communicator) -> absl::Status {
    BufferedModel model(communicator.rank());
    SSL_RETURN_IF_ERROR(CopyFromRankZero(model, communicator));
    EXPECT_EQ(Hash(model), Hash(of_rank_zero));
    EXPECT_TRUE(model.weight().requires_grad());
    return CheckParametersAreEqual(model, communicator);
  }));
}

TEST(ModelReplicas, ParametersThatDiffer_AreNamed) {
  EXPECT_OK(InThreads(3, [&](Communicator& communicator) -> absl::Status {
    BufferedModel model(0);
    model.mean().add_(communicator.rank());  // a buffer
    EXPECT_OK(CheckParametersAreEqual(model, communicator));
    if (communicator.rank() == 2) model.weight().detach()[1][2].add_(1e-7);
    const absl::Status status = CheckParametersAreEqual(model, communicator);
    if (communicator.rank() == 2) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr("rank 2 has other weights than rank 0: weight;")));
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, HasSubstr("comparing weights")));
    }
    return absl::OkStatus();
  }));
}

TEST(ModelReplicas, BufferBroadcast_TakesBuffersAloneByOneOperation) {
  EXPECT_OK(InThreads(2, [&](Communicator& communicator) -> absl::Status {
    CollectiveCounts counts;
    CountingCommunicator counted(communicator, &counts);
    BufferedModel model(communicator.rank());
    BufferedModel expected(0);
    expected.weight().detach().copy_(model.weight());
    BufferBroadcast broadcast(model, counted);
    SSL_RETURN_IF_ERROR(broadcast.Run());
    EXPECT_THAT(counts.Take(), ElementsAre(Pair("broadcast", 1)));
    EXPECT_EQ(Hash(model), Hash(expected));
    model.mean().fill_(communicator.rank() + 3.0);
    SSL_RETURN_IF_ERROR(broadcast.Run());
    EXPECT_EQ(model.mean()[2][4].item<float>(), 3.0F);
    return absl::OkStatus();
  }));
}

TEST(ModelReplicas, WorldOfOne_AsksForNothing) {
  const std::unique_ptr<Communicator> one = MakeLocalCommunicator();
  CollectiveCounts counts;
  CountingCommunicator communicator(*one, &counts);
  BufferedModel model(1);
  const uint32_t before = Hash(model);
  EXPECT_OK(CopyFromRankZero(model, communicator));
  EXPECT_OK(BufferBroadcast(model, communicator).Run());
  EXPECT_EQ(Hash(model), before);
  EXPECT_THAT(counts.Take(), ElementsAre());
}

// A session of the model above: two epochs of five updates, each with a test phase after it.
absl::StatusOr<std::unique_ptr<Session>> BufferedSession(Communicator& communicator, bool broadcast_buffers) {
  Registries registries = FakeRegistries();
  SSL_RETURN_IF_ERROR(registries.models.Register("buffered_model", [](const ConfigNode&, const BuildContext& context) {
    return absl::StatusOr<std::unique_ptr<Model>>(std::make_unique<BufferedModel>(context.communicator.rank()));
  }));
  ConfigNode config = FakeConfig("");
  config.SetPath("MODEL.BASE_MODEL_NAME", ConfigNode::FromString("buffered_model"));
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(true));
  config.SetPath("DISTRIBUTED.BROADCAST_BUFFERS", ConfigNode::FromBool(broadcast_buffers));
  SessionOptions options;
  options.communicator = &communicator;
  return Session::Create(config, registries, std::move(options));
}

TEST(ModelReplicas, SessionsModel_StartsAsRankZerosEverywhere) {
  BufferedModel of_rank_zero(0);
  EXPECT_OK(InThreads(2, [&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, BufferedSession(communicator, true));
    EXPECT_EQ(Hash(session->model()), Hash(of_rank_zero));
    return absl::OkStatus();
  }));
}

TEST(ModelReplicas, WeightsThatDifferAtTheStart_EndTheRunOnAllRanks) {
  EXPECT_OK(InThreads(2, [&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, BufferedSession(communicator, true));
    if (communicator.rank() == 1) static_cast<BufferedModel&>(session->model()).weight().detach().add_(1e-3);
    const absl::StatusCode expected =
        communicator.rank() == 1 ? absl::StatusCode::kDataLoss : absl::StatusCode::kAborted;
    EXPECT_THAT(session->Step().status(), StatusIs(expected));
    return absl::OkStatus();
  }));
}

// What each forward pass of 10 updates and 10 test batches finds.
TEST(ModelReplicas, BroadcastBuffers_MakesEachForwardPassBeginWithRankZeros) {
  for (const bool broadcasts : {true, false}) {
    std::vector<std::vector<float>> seen(2);
    EXPECT_OK(InThreads(2, [&](Communicator& communicator) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, BufferedSession(communicator, broadcasts));
      SSL_RETURN_IF_ERROR(session->Train().status());
      seen[communicator.rank()] = static_cast<BufferedModel&>(session->model()).seen_means;
      return absl::OkStatus();
    }));
    ASSERT_EQ(seen[0].size(), 20u);
    EXPECT_EQ(seen[0][0], seen[1][0]);
    EXPECT_NE(seen[0][1], seen[0][0]) << "the model's own batch moves it";
    for (size_t i = 1; i < seen[0].size(); ++i) EXPECT_EQ(seen[0][i] == seen[1][i], broadcasts) << i;
  }
}

}  // namespace
}  // namespace ssl
