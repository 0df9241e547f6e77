// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/ema_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/autocast.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/meter.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/recording_meter.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A weight, a running statistic that counts in evaluation mode only, and a counter.
class LinearModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    if (fails) throw std::runtime_error("no forward today");
    const at::Tensor output = at::linear(views[0], weight);
    return {training ? output : output + running};
  }
  std::vector<at::Tensor> ForwardNamed(const std::map<std::string, at::Tensor>& inputs) override {
    return Forward({inputs.at("image")});
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {{"weight", weight}}; }
  void SetTraining(bool now) override { training = now; }
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight);
    visitor.Tensor("running", running);
    visitor.Tensor("count", count);
  }

  // As an optimizer does.
  void Set(double weight_value, double running_value) {
    at::Tensor data = weight.detach();
    data.fill_(weight_value);
    running.fill_(running_value);
    count.add_(1);
  }

  at::Tensor weight = at::ones({1, 2}).set_requires_grad(true);
  at::Tensor running = at::zeros({1});
  at::Tensor count = at::zeros({}, at::kLong);
  bool training = true;
  bool fails = false;
};

class EmaHookTest : public ::testing::Test {
 protected:
  EmaHookTest() {
    options_.warmup = 0.0;
    options_.decay = 0.75;
    batch_.views = {at::tensor(std::vector<float>{1.0F, 2.0F}).view({1, 2})};
    context_.batch = &batch_;
    step_.state.max_iterations = 10;
    step_.state.iteration = 5;
  }

  std::unique_ptr<EmaHook> MakeHook(bool in_training = true) {
    std::vector<std::unique_ptr<Meter>> meters;
    meters.push_back(std::make_unique<RecordingMeter>(&outputs_));
    return std::make_unique<EmaHook>(options_, std::move(meters), in_training);
  }

  // The averages of weight and running statistic.
  static std::vector<double> Averages(EmaHook& hook) {
    const auto state = CollectState(hook);
    EXPECT_OK(state);
    std::vector<double> averages;
    for (const NamedTensor& entry : *state) {
      if (entry.name == "names") continue;
      for (int64_t i = 0; i < entry.tensor.numel(); ++i) averages.push_back(entry.tensor[i].item<double>());
    }
    return averages;
  }

  EmaHookOptions options_;
  std::vector<double> outputs_;
  LinearModel model_;
  FakeStep step_;
  Batch batch_;
  StepContext context_{step_.state,   model_,     &step_.optimizer, step_.context.communicator,
                       step_.metrics, step_.stop, &step_.saver};
};

TEST_F(EmaHookTest, Averages_StartAsCopiesAndMoveTowardsTheModel) {
  EmaHook hook(options_, {}, true);
  ASSERT_OK(hook.OnStart(context_));
  model_.Set(5.0, 8.0);
  EXPECT_THAT(Averages(hook), ElementsAre(1.0, 1.0, 0.0));

  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(2.0, 2.0, 2.0));
  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(2.75, 2.75, 3.5));
}

TEST_F(EmaHookTest, WarmUp_Copies) {
  options_.warmup = 0.6;
  EmaHook hook(options_, {}, true);
  ASSERT_OK(hook.OnStart(context_));
  model_.Set(5.0, 8.0);

  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(5.0, 5.0, 8.0));

  step_.state.iteration = 6;
  model_.Set(1.0, 0.0);
  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(4.0, 4.0, 6.0));
}

TEST_F(EmaHookTest, UpdateIter_SkipsUpdates) {
  options_.update_iter = 3;
  EmaHook hook(options_, {}, true);
  ASSERT_OK(hook.OnStart(context_));
  model_.Set(5.0, 8.0);

  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(1.0, 1.0, 0.0));
  step_.state.iteration = 6;
  ASSERT_OK(hook.OnUpdate(context_));
  EXPECT_THAT(Averages(hook), ElementsAre(2.0, 2.0, 2.0));
}

TEST_F(EmaHookTest, RestoredAverages_GoOn) {
  const auto first = MakeHook();
  ASSERT_OK(first->OnStart(context_));
  model_.Set(5.0, 8.0);
  ASSERT_OK(first->OnUpdate(context_));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*first));
  const auto second = MakeHook();
  ASSERT_OK(RestoreState(*second, state, "test"));

  ASSERT_OK(second->OnStart(context_));

  EXPECT_THAT(Averages(*second), ElementsAre(2.0, 2.0, 2.0));
  ASSERT_OK(second->OnUpdate(context_));
  EXPECT_THAT(Averages(*second), ElementsAre(2.75, 2.75, 3.5));
}

TEST_F(EmaHookTest, RestoreAfterTheStart_ReplacesTheAverages) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(*hook));
  for (NamedTensor& entry : state) entry.tensor = entry.tensor.clone();
  model_.Set(5.0, 8.0);
  ASSERT_OK(hook->OnUpdate(context_));

  ASSERT_OK(RestoreState(*hook, state, "test"));

  EXPECT_THAT(Averages(*hook), ElementsAre(1.0, 1.0, 0.0));
}

TEST_F(EmaHookTest, AveragesOfAnOlderVersion_AreInOneRow) {
  EmaHook first(options_, {}, true);
  ASSERT_OK(first.OnStart(context_));
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(first));
  state.resize(2);
  ASSERT_EQ(state[1].name, "averages");
  state[1].tensor = at::tensor(std::vector<float>{4.0F, 5.0F, 6.0F});
  EmaHook second(options_, {}, true);
  ASSERT_OK(RestoreState(second, state, "test"));
  ASSERT_OK(second.OnStart(context_));
  EXPECT_THAT(Averages(second), ElementsAre(4.0, 5.0, 6.0));
}

TEST_F(EmaHookTest, AveragesOfAnotherSize_AreRefused) {
  EmaHook first(options_, {}, true);
  ASSERT_OK(first.OnStart(context_));
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(first));
  for (const int64_t size : {1, 3}) {
    state[1].tensor = at::zeros({size});
    EmaHook second(options_, {}, true);
    ASSERT_OK(RestoreState(second, state, "test"));
    EXPECT_THAT(second.OnStart(context_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of other tensors")));
  }
}

TEST_F(EmaHookTest, RanksKeepTheAveragesOfParametersOnce) {
  const std::string directory = MakeTempDir("ema") + "/checkpoints";
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    LinearModel model;
    model.Set(5.0, communicator.rank());
    FakeStep step(communicator);
    step.state.iteration = 5;
    step.state.max_iterations = 10;
    StepContext context{step.state, model, &step.optimizer, communicator, step.metrics, step.stop, &step.saver};
    EmaHook hook(options_, {}, true);
    SSL_RETURN_IF_ERROR(hook.OnStart(context));
    CheckpointerOptions options;
    options.store.directory = directory;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpointer> checkpointer,
                         Checkpointer::Make(options, PosixFileSystem(), communicator, hook, step.state));
    SSL_RETURN_IF_ERROR(checkpointer->Open());
    SSL_RETURN_IF_ERROR(checkpointer->Save());
    return checkpointer->Wait();
  }));
  ASSERT_OK_AND_ASSIGN(const SafetensorsContent own, ReadSafetensors(directory + "/step_5/state_rank1.safetensors"));
  ASSERT_THAT(own.tensors, SizeIs(1));
  EXPECT_EQ(own.tensors[0].name, "buffers/averages/values");
  EXPECT_EQ(own.tensors[0].tensor.numel(), 1);
  EXPECT_EQ(own.tensors[0].tensor.item<float>(), 1.0F);
}

TEST_F(EmaHookTest, AveragesOfAnotherModel_AreRefused) {
  EmaHook first(options_, {}, true);
  ASSERT_OK(first.OnStart(context_));
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(first));
  state[0].tensor = at::full({4}, 97, at::kByte);
  EmaHook second(options_, {}, true);
  ASSERT_OK(RestoreState(second, state, "test"));

  EXPECT_THAT(second.OnStart(context_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of other tensors")));
}

TEST_F(EmaHookTest, Meters_SeeTheAveragedModelInEvaluationMode) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  model_.Set(5.0, 8.0);
  ASSERT_OK(hook->OnUpdate(context_));

  ASSERT_OK(hook->OnLossAndMeter(context_));

  EXPECT_THAT(outputs_, ElementsAre(2.0 * 1.0 + 2.0 * 2.0 + 2.0));
  EXPECT_TRUE(model_.training);
  EXPECT_EQ(model_.weight[0][0].item<double>(), 5.0);
  EXPECT_EQ(model_.running.item<double>(), 8.0);
  EXPECT_EQ(model_.count.item<int64_t>(), 1);
}

TEST_F(EmaHookTest, NamedInputs_ReachTheModel) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  batch_.named_inputs["image"] = batch_.views[0];
  batch_.views.clear();

  ASSERT_OK(hook->OnLossAndMeter(context_));

  EXPECT_THAT(outputs_, ElementsAre(3.0));
}

TEST_F(EmaHookTest, GraphOfTheStep_IsNotTouched) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  model_.Set(5.0, 8.0);
  const at::Tensor input = batch_.views[0].clone().set_requires_grad(true);
  const at::Tensor loss = model_.Forward({input})[0].square().sum();  // (5 + 10)^2

  ASSERT_OK(hook->OnLossAndMeter(context_));
  loss.backward();

  EXPECT_EQ(model_.weight.grad()[0][1].item<double>(), 2.0 * 15.0 * 2.0);
  EXPECT_EQ(input.grad()[0][0].item<double>(), 2.0 * 15.0 * 5.0);
}

TEST_F(EmaHookTest, ShortCopiesOfTheModelsWeights_AreNotTakenForTheAverages) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  model_.Set(5.0, 0.0);
  const AutocastScope autocast(Autocast::kBFloat16);
  EXPECT_EQ(model_.Forward(batch_.views)[0].item<double>(), 15.0);

  ASSERT_OK(hook->OnLossAndMeter(context_));

  EXPECT_THAT(outputs_, ElementsAre(3.0));
  EXPECT_EQ(model_.Forward(batch_.views)[0].item<double>(), 15.0);
}

TEST_F(EmaHookTest, FailingForward_LeavesTheModelAsItWas) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  model_.Set(5.0, 8.0);
  model_.fails = true;

  EXPECT_THAT(hook->OnLossAndMeter(context_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("measuring the averaged model: no forward today")));

  EXPECT_TRUE(model_.training);
  EXPECT_EQ(model_.weight[0][0].item<double>(), 5.0);
}

TEST_F(EmaHookTest, Reports_OfAnInstanceWithItsOwnName_HaveThatName) {
  const auto hook = MakeHook();
  hook->set_instance_name("slow");
  ASSERT_OK(hook->OnStart(context_));
  ASSERT_OK(hook->OnPhaseStart(context_));
  ASSERT_OK(hook->OnLossAndMeter(context_));

  ASSERT_OK(hook->OnPhaseEnd(context_));

  ASSERT_THAT(context_.meter_reports, SizeIs(1));
  EXPECT_EQ(context_.meter_reports[0].meter, "recording_slow");
}

TEST_F(EmaHookTest, Reports_AreNamedAfterTheMeters) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  ASSERT_OK(hook->OnPhaseStart(context_));
  ASSERT_OK(hook->OnLossAndMeter(context_));

  ASSERT_OK(hook->OnPhaseEnd(context_));

  ASSERT_THAT(context_.meter_reports, SizeIs(1));
  EXPECT_EQ(context_.meter_reports[0].meter, "recording_ema");
  EXPECT_EQ(context_.meter_reports[0].values[0].value, 1.0);
}

TEST_F(EmaHookTest, TrainPhases_AreMeasuredOnlyWhenAskedFor) {
  const auto hook = MakeHook(/*in_training=*/false);
  ASSERT_OK(hook->OnStart(context_));
  ASSERT_OK(hook->OnLossAndMeter(context_));
  ASSERT_OK(hook->OnPhaseEnd(context_));
  EXPECT_THAT(outputs_, IsEmpty());
  EXPECT_THAT(context_.meter_reports, IsEmpty());

  step_.state.training = false;
  ASSERT_OK(hook->OnLossAndMeter(context_));

  EXPECT_THAT(outputs_, SizeIs(1));
  EXPECT_FALSE(model_.training);
}

TEST_F(EmaHookTest, NewPhases_ResetTheMetersAndResumedOnesDoNot) {
  const auto hook = MakeHook();
  ASSERT_OK(hook->OnStart(context_));
  ASSERT_OK(hook->OnLossAndMeter(context_));

  step_.state.batch_in_phase = 1;
  ASSERT_OK(hook->OnPhaseStart(context_));
  EXPECT_THAT(outputs_, SizeIs(1));

  step_.state.batch_in_phase = 0;
  ASSERT_OK(hook->OnPhaseStart(context_));
  EXPECT_THAT(outputs_, IsEmpty());
}

TEST_F(EmaHookTest, Stage_FollowsWhatChangesTheModelAndPrecedesCheckpoints) {
  EXPECT_GT(EmaHook(options_, {}, true).stage(), HookStage::kMutate);
  EXPECT_LT(EmaHook(options_, {}, true).stage(), HookStage::kPersist);
}

}  // namespace
}  // namespace ssl
