// SPDX-License-Identifier: Apache-2.0
//
// What a host's own part is when it overrides no more than it has to: the defaults that interfaces promise.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Outputs the number of views, or minus that of named inputs.
class CountingModel : public Model {
 public:
  explicit CountingModel(bool takes_names) : takes_names_(takes_names) {}
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {at::full({}, static_cast<double>(views.size()))};
  }
  std::vector<at::Tensor> ForwardNamed(const std::map<std::string, at::Tensor>& inputs) override {
    if (!takes_names_) return Model::ForwardNamed(inputs);
    return {at::full({}, -static_cast<double>(inputs.size()))};
  }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}

 private:
  const bool takes_names_;
};

class PlainMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext&) override { return absl::OkStatus(); }
};

class PlainHook : public Hook {
 public:
  absl::string_view name() const override { return "plain"; }
  HookStage stage() const override { return HookStage::kObserve; }
};

class PlainOptimizer : public Optimizer {
 public:
  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    groups_ = std::move(groups);
    return absl::OkStatus();
  }
  std::vector<ParameterGroup>& groups() override { return groups_; }
  void Step(const at::Tensor& found_inf) override {}

 private:
  std::vector<ParameterGroup> groups_;
};

// A step on one batch.
class InterfaceDefaultsTest : public ::testing::Test {
 protected:
  StepContext ContextOf(Model& model) {
    StepContext context{state_, model, nullptr, *communicator_, metrics_, stop_, nullptr};
    context.batch = &batch_;
    return context;
  }

  TrainState state_;
  MetricStore metrics_;
  StopToken stop_;
  Batch batch_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(InterfaceDefaultsTest, Method_RunsTheModelOnAllViewsOrOnTheNamedInputs) {
  CountingModel model(/*takes_names=*/true);
  StepContext context = ContextOf(model);
  PlainMethod method;
  batch_.views = {at::ones({2, 1}), at::ones({2, 1}), at::ones({2, 1})};
  ASSERT_OK(method.Forward(context));
  EXPECT_EQ(context.outputs.at(0).item<int64_t>(), 3);
  batch_.named_inputs = {{"left", at::ones({2, 1})}, {"right", at::ones({2, 1})}};
  ASSERT_OK(method.Forward(context));
  EXPECT_EQ(context.outputs.at(0).item<int64_t>(), -2) << "named inputs come first";
}

TEST_F(InterfaceDefaultsTest, Method_AsksForNoLabelsAndRemembersNothing) {
  CountingModel model(/*takes_names=*/false);
  StepContext context = ContextOf(model);
  PlainMethod method;
  EXPECT_OK(method.Prepare(context));
  EXPECT_OK(method.Advance(context));
  EXPECT_FALSE(method.needs_labels());
  EXPECT_FALSE(method.scores_classes());
  EXPECT_EQ(method.ignored_label(), -1);
  EXPECT_THAT(method.MakeHooks(), IsEmpty());
  EXPECT_THAT(CollectState(method).value(), IsEmpty());
}

TEST_F(InterfaceDefaultsTest, Model_SaysThatItTakesNoNamedInputsAndGivesNoMap) {
  CountingModel model(/*takes_names=*/false);
  EXPECT_THAT(GuardTorch("forward",
                         [&] {
                           model.ForwardNamed({{"left", at::ones({1})}});
                           return absl::OkStatus();
                         }),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("this model takes views, not 1 named inputs")));
  EXPECT_THAT(GuardTorch("forward",
                         [&] {
                           model.ForwardWithMap(at::ones({1, 1, 2, 2}), "res5");
                           return absl::OkStatus();
                         }),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("does not give the map of its stage 'res5'")));
  EXPECT_THAT(model.feature_names(), IsEmpty());
  EXPECT_THAT(model.configured_features(), IsEmpty());
  EXPECT_THAT(model.block_names(), IsEmpty());
}

TEST_F(InterfaceDefaultsTest, Source_HasLabelsAndCannotTellItsClasses) {
  const FakeSource source(8, 4, 0, 1);
  EXPECT_TRUE(source.has_labels());
  EXPECT_THAT(source.Classes(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(source.ClassNames(), IsEmpty());
}

TEST_F(InterfaceDefaultsTest, Hook_IsCalledAsItsClassUntilARunNamesIt) {
  PlainHook hook;
  EXPECT_EQ(hook.instance_name(), "plain");
  hook.set_instance_name("second");
  EXPECT_EQ(hook.instance_name(), "second");
  EXPECT_EQ(hook.name(), "plain");
  EXPECT_THAT(hook.Plan(), IsEmpty());
}

TEST_F(InterfaceDefaultsTest, Optimizer_DropsGradientsOfAllGroups) {
  std::vector<ParameterGroup> groups(2);
  std::vector<at::Tensor> values;
  for (ParameterGroup& group : groups) {
    at::Tensor value = at::ones({2}).set_requires_grad(true);
    value.mutable_grad() = at::ones({2});
    group.parameters = {value};
    values.push_back(value);
  }
  PlainOptimizer optimizer;
  ASSERT_OK(optimizer.Initialize(groups));
  optimizer.ZeroGrad();
  for (const at::Tensor& value : values) EXPECT_FALSE(value.grad().defined()) << "undefined, not zero: no update";
}

}  // namespace
}  // namespace ssl
