// SPDX-License-Identifier: Apache-2.0
//
// Averages of parameters that ranks share out: they are measured by what is gathered from shards, and a checkpoint has
// them as one of whole parameters does.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/meter.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/ema_hook.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/recording_meter.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

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

// A block with a weight [5, 3], of which no number of ranks divides the rows, and a bias; beside it a parameter of no
// block, in between them in the state, and a buffer.
class MixedModel : public Model {
 public:
  absl::Status Share(Communicator& communicator) {
    SSL_ASSIGN_OR_RETURN(shards_,
                         ParameterShards::Make({{"block", {{"weight", weight_}, {"bias", bias_}}}}, communicator));
    shards_->Release(/*take_over=*/true);
    return absl::OkStatus();
  }

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override {
    return {{"weight", Held(weight_)}, {"scale", scale_}, {"bias", Held(bias_)}};
  }
  ParameterShards* parameter_shards() override { return shards_.get(); }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override {
    at::Tensor weight = Held(weight_);
    at::Tensor bias = Held(bias_);
    visitor.Tensor("weight", weight);
    visitor.Tensor("running", running_);
    visitor.Tensor("scale", scale_);
    visitor.Tensor("bias", bias);
  }

 private:
  at::Tensor Held(const at::Tensor& parameter) const {
    return shards_ == nullptr ? parameter : shards_->ShardOf(parameter);
  }

  at::Tensor weight_ = at::arange(15, at::kFloat).view({5, 3}).set_requires_grad(true);
  at::Tensor scale_ = at::tensor(std::vector<float>{0.5F, 0.25F}).set_requires_grad(true);
  at::Tensor bias_ = at::arange(5, at::kFloat).set_requires_grad(true);
  at::Tensor running_ = at::ones({4});
  std::unique_ptr<ParameterShards> shards_;
};

struct RunState : public Stateful {
  RunState(TrainState& train_state, EmaHook& ema_hook) : train(train_state), ema(ema_hook) {}
  void VisitState(StateVisitor& visitor) override {
    visitor.Scope("train_state", train);
    visitor.Scope("ema", ema);
  }

  TrainState& train;
  EmaHook& ema;
};

struct Leg {
  int64_t ranks = 1;
  bool shares = true;
  int64_t from = 0;  // the checkpoint that it goes on from; 0: it begins
};

// Saves one update after `leg.from`.
absl::Status GoOn(const Leg& leg, const std::string& directory, Communicator& communicator) {
  MixedModel model;
  if (leg.shares) SSL_RETURN_IF_ERROR(model.Share(communicator));
  FakeStep step(communicator);
  step.state.max_iterations = 10;
  StepContext context{step.state, model, &step.optimizer, communicator, step.metrics, step.stop, &step.saver};
  EmaHookOptions ema;
  ema.warmup = 0.0;
  ema.decay = 0.7;
  EmaHook hook(ema, {}, true);
  RunState root(step.state, hook);
  CheckpointerOptions options;
  options.store.directory = directory;
  options.model = &model;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                       Checkpointer::Make(options, PosixFileSystem(), communicator, root, step.state));
  SSL_RETURN_IF_ERROR(checkpointer->Open());
  if (leg.from > 0) SSL_RETURN_IF_ERROR(checkpointer->Restore(leg.from));
  SSL_RETURN_IF_ERROR(hook.OnStart(context));
  step.state.iteration = leg.from + 1;
  for (const NamedParameter& parameter : model.Parameters()) parameter.value.detach().mul_(1.0 / (leg.from + 3));
  SSL_RETURN_IF_ERROR(hook.OnUpdate(context));
  SSL_RETURN_IF_ERROR(checkpointer->Save());
  return checkpointer->Wait();
}

// The row of averages of each checkpoint.
std::vector<at::Tensor> AveragesOf(const std::vector<Leg>& legs) {
  const std::string directory = MakeTempDir("legs") + "/checkpoints";
  std::vector<at::Tensor> rows;
  for (const Leg& leg : legs) {
    EXPECT_OK(ThreadWorld(leg.ranks, absl::Seconds(60)).Run([&](Communicator& communicator) {
      return GoOn(leg, directory, communicator);
    }));
    const auto file = ReadSafetensors(absl::StrCat(directory, "/step_", leg.from + 1, "/state_rank0.safetensors"));
    EXPECT_OK(file.status());
    if (!file.ok()) return rows;
    for (const NamedTensor& entry : file->tensors) {
      if (entry.name == "ema/averages") rows.push_back(entry.tensor);
    }
  }
  return rows;
}

TEST(EmaHookOfShards, AveragesGoOnWithAnyNumberOfRanksAndWithWholeParameters_BitForBit) {
  const std::vector<at::Tensor> expected = AveragesOf({{1, false, 0}, {1, false, 1}, {1, false, 2}, {1, false, 3}});
  const std::vector<at::Tensor> actual = AveragesOf({{2, true, 0}, {4, true, 1}, {2, false, 2}, {2, true, 3}});
  ASSERT_EQ(expected.size(), 4u);
  ASSERT_EQ(actual.size(), 4u);
  EXPECT_FALSE(at::equal(expected[2], expected[3]));
  for (size_t leg = 0; leg < expected.size(); ++leg) EXPECT_TRUE(at::equal(actual[leg], expected[leg])) << leg;
}

}  // namespace
}  // namespace ssl
