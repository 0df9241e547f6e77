// SPDX-License-Identifier: Apache-2.0
//
// Averages of parameters that ranks share out: they are measured by what is gathered from shards.
#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/meter.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/ema_hook.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

// x + 2 y with weights of 1, of which rank 0 holds the row.
class ShardedModel : public Model {
 public:
  absl::Status Share(Communicator& communicator) {
    SSL_ASSIGN_OR_RETURN(shards_, ParameterShards::Make({{"block", {{"weight", weight_, false}}}}, communicator));
    shards_->Release(/*take_over=*/true);
    return absl::OkStatus();
  }

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    const auto run = [&] { return std::vector<at::Tensor>{at::linear(views[0], weight_)}; };
    return shards_->Run(0, ParameterShards::Pass::kForward, run);
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {{"weight", shards_->ShardOf(weight_)}}; }
  ParameterShards* parameter_shards() override { return shards_.get(); }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override {
    at::Tensor shard = shards_->ShardOf(weight_);
    visitor.Tensor("weight", shard);
  }

 private:
  at::Tensor weight_ = at::ones({1, 2}).set_requires_grad(true);
  std::unique_ptr<ParameterShards> shards_;
};

class RecordingMeter : public Meter {
 public:
  explicit RecordingMeter(std::vector<double>* outputs) : outputs_(outputs) {}

  absl::string_view name() const override { return "recording"; }
  absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) override {
    outputs_->push_back(outputs[0].item<double>());
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) override {
    return std::vector<MeterValue>();
  }
  void Reset() override { outputs_->clear(); }

 private:
  std::vector<double>* outputs_;
};

TEST(EmaHookOfShards, Meters_SeeTheAverages) {
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    ShardedModel model;
    SSL_RETURN_IF_ERROR(model.Share(communicator));
    Batch batch;
    batch.views = {at::tensor(std::vector<float>{1.0F, 2.0F}).view({1, 2})};
    FakeStep step(communicator);
    StepContext context{step.state, model, &step.optimizer, communicator, step.metrics, step.stop, &step.saver};
    context.batch = &batch;
    std::vector<double> outputs;
    std::vector<std::unique_ptr<Meter>> meters;
    meters.push_back(std::make_unique<RecordingMeter>(&outputs));
    EmaHook hook(EmaHookOptions(), std::move(meters), /*in_training=*/true);
    SSL_RETURN_IF_ERROR(hook.OnStart(context));
    model.Parameters()[0].value.detach().fill_(5.0);

    SSL_RETURN_IF_ERROR(hook.OnLossAndMeter(context));

    EXPECT_THAT(outputs, ElementsAre(3.0));
    EXPECT_EQ(model.Forward(batch.views)[0].item<double>(), 15.0);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
