// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/embedding_checks.h"

#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

EmbeddingShape Expect(int64_t num_views, int64_t width) { return {"pair_loss", "sizes.width", num_views, width}; }

// Has the tensors that a test gives it, none of which is trained.
class TensorsModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override {
    for (auto& [name, tensor] : tensors) visitor.Tensor(name, tensor);
  }

  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

class EmbeddingChecksTest : public ::testing::Test {
 protected:
  EmbeddingChecksTest() {
    batch_.views.resize(2);
    context_.batch = &batch_;
    context_.outputs = {at::zeros({6, 4})};
  }

  TensorsModel model_;
  Batch batch_;
  TrainState state_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_{state_, model_, nullptr, *communicator_, metrics_, stop_, nullptr};
};

TEST_F(EmbeddingChecksTest, LastMatrixOfTheHeads_GivesTheWidth) {
  model_.tensors = {{"trunk.fc.weight", at::zeros({9, 9})},
                    {"heads.0.clf.0.weight", at::zeros({16, 9})},
                    {"heads.1.clf.0.weight", at::zeros({4, 16})},
                    {"heads.1.clf.0.bias", at::zeros({4})},
                    {"heads.1.clf.1.weight", at::zeros({4})}};  // of a batch norm
  EXPECT_OK(CheckHeadWidth(model_, Expect(2, 4)));
  EXPECT_THAT(
      CheckHeadWidth(model_, Expect(2, 16)),
      StatusIs(
          kInvalid,
          HasSubstr(
              "config.LOSS.pair_loss.sizes.width is 16, but the last layer of the heads, heads.1.clf.0.weight, gives 4 "
              "values (config.MODEL.HEAD.PARAMS)")));
}

// As the head of DINO has it behind its bottleneck.
TEST_F(EmbeddingChecksTest, LayerWithANormalisedWeight_CountsByItsDirections) {
  model_.tensors = {{"heads.0.mlp.4.weight", at::zeros({24, 9})},
                    {"heads.0.prototypes0.weight_g", at::zeros({4, 1})},
                    {"heads.0.prototypes0.weight_v", at::zeros({4, 24})}};
  EXPECT_OK(CheckHeadWidth(model_, Expect(2, 4)));
  EXPECT_THAT(CheckHeadWidth(model_, Expect(2, 24)), StatusIs(kInvalid, HasSubstr("prototypes0.weight_v, gives 4")));
}

TEST_F(EmbeddingChecksTest, ModelWithoutHeads_PassesForNow) {
  model_.tensors = {{"trunk.fc.weight", at::zeros({9, 9})}};
  EXPECT_OK(CheckHeadWidth(model_, Expect(2, 4)));
}

TEST_F(EmbeddingChecksTest, FittingBatchAndOutputs_Pass) { EXPECT_OK(CheckEmbeddings(context_, Expect(2, 4))); }

TEST_F(EmbeddingChecksTest, OtherViewsOutputsOrWidth_AreRefusedWithBothNumbers) {
  EXPECT_THAT(CheckEmbeddings(context_, Expect(3, 4)),
              StatusIs(kInvalid, HasSubstr("batch has 2 views, pair_loss expects 3 (config.DATA.TRAIN.TRANSFORMS)")));
  EXPECT_THAT(
      CheckEmbeddings(context_, Expect(2, 5)),
      StatusIs(kInvalid,
               HasSubstr("embeddings have shape [6, 4], expected [rows, 5] (config.LOSS.pair_loss.sizes.width)")));
  context_.outputs = {at::zeros({6, 4, 1, 1})};
  EXPECT_THAT(CheckEmbeddings(context_, Expect(2, 4)), StatusIs(kInvalid, HasSubstr("[6, 4, 1, 1]")));
  context_.outputs = {at::zeros({6, 4}), at::zeros({6, 9})};
  EXPECT_THAT(CheckEmbeddings(context_, Expect(2, 4)),
              StatusIs(kInvalid, HasSubstr("model returned 2 outputs, pair_loss expects 1")));
}

}  // namespace
}  // namespace ssl
