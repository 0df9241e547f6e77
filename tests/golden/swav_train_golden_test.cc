// SPDX-License-Identifier: Apache-2.0
//
// Whole training steps with the real head, loss and hooks of SwAV; the update of SGD is written out here, so that
// a difference points at SwAV.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/models/head.h"
#include "ssl/models/head_section.h"
#include "ssl/models/heads/swav_head.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
#include "tests/golden/swav_case.h"

namespace ssl {
namespace {

constexpr char kHeadPrefix[] = "heads.0.";

// A head that is fed with features directly.
class HeadModel : public Model {
 public:
  explicit HeadModel(std::unique_ptr<Head> head) : head_(std::move(head)) {}

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return head_->Forward(views[0]); }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override {
    std::vector<NamedParameter> parameters;
    for (const ModelTensor& entry : head_->Tensors()) {
      if (entry.role != TensorRole::kBuffer) parameters.push_back({kHeadPrefix + entry.name, entry.value, false});
    }
    return parameters;
  }
  void SetTraining(bool training) override { head_->SetTraining(training); }

  // By the golden file's names: "head.prototypes0.weight".
  std::map<std::string, at::Tensor> Tensors() const {
    std::map<std::string, at::Tensor> tensors;
    for (const ModelTensor& entry : head_->Tensors()) tensors.emplace("head." + entry.name, entry.value);
    return tensors;
  }

  // One of them; an unknown name is a test failure, and undefined.
  at::Tensor Tensor(const std::string& name) const {
    const std::map<std::string, at::Tensor> tensors = Tensors();
    const auto found = tensors.find(name);
    if (found != tensors.end()) return found->second;
    ADD_FAILURE() << "the head has no tensor '" << name << "'";
    return at::Tensor();
  }

 private:
  std::unique_ptr<Head> head_;
};

std::unique_ptr<HeadModel> MakeModel(const golden::Case& golden_case) {
  SwavHeadOptions options;
  options.dims = golden_case.Ints("dims");
  options.use_bn = golden_case.Flag("use_bn");
  options.num_clusters = golden_case.Ints("num_prototypes");
  absl::StatusOr<std::unique_ptr<Head>> head = MakeSwavHead(options, HeadSection(), /*seed=*/0);
  if (!head.ok()) {
    ADD_FAILURE() << head.status();
    return nullptr;
  }
  auto model = std::make_unique<HeadModel>(*std::move(head));
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : golden_case.inputs) {
    if (!absl::StartsWith(name, "head.")) continue;
    at::Tensor target = model->Tensor(name);
    if (target.defined()) target.copy_(value);
  }
  return model;
}

// torch.optim.SGD: v <- m v + g, w <- w - lr v (Nesterov: g + m v), with g = gradient + decay * w.
class ReferenceSgd {
 public:
  explicit ReferenceSgd(const golden::Case& golden_case) : case_(golden_case) {}

  void Step(const std::vector<NamedParameter>& parameters) {
    const at::NoGradGuard no_grad;
    const double momentum = case_.Double("momentum");
    for (const NamedParameter& parameter : parameters) {
      at::Tensor weight = parameter.value;
      if (!weight.grad().defined()) continue;
      const at::Tensor gradient = weight.grad() + weight * case_.Double("weight_decay");
      at::Tensor& velocity = velocities_[parameter.name];
      velocity = velocity.defined() ? velocity * momentum + gradient : gradient.clone();
      weight.sub_((case_.Flag("nesterov") ? gradient + velocity * momentum : velocity) * case_.Double("lr"));
    }
  }

 private:
  const golden::Case& case_;
  std::map<std::string, at::Tensor> velocities_;
};

// Gradients as they are before the update; undefined ones are left out.
std::map<std::string, at::Tensor> GradientsOf(const HeadModel& model) {
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, value] : model.Tensors()) {
    if (value.grad().defined()) gradients.emplace(name, value.grad().clone());
  }
  return gradients;
}

struct StepResult {
  at::Tensor loss;
  at::Tensor embedding;
  std::map<std::string, at::Tensor> gradients;
  bool frozen = false;

  // Undefined when there is none.
  at::Tensor Gradient(const std::string& name) const {
    const auto found = gradients.find(name);
    return found != gradients.end() ? found->second : at::Tensor();
  }
};

void CheckOutput(const std::string& name, const golden::Output& expected, const StepResult& result,
                 const HeadModel& model, SwavMethod& method) {
  SCOPED_TRACE(name);
  if (name == "loss") {
    EXPECT_TRUE(golden::Matches(result.loss, expected));
  } else if (name == "embedding") {
    EXPECT_TRUE(golden::Matches(result.embedding, expected));
  } else if (name == "prototypes_frozen") {
    EXPECT_EQ(result.frozen ? 1 : 0, expected.integer);
  } else if (name == "grad_projection0") {
    EXPECT_TRUE(golden::Matches(result.Gradient("head.projection_head.0.weight"), expected));
  } else if (absl::StartsWith(name, "grad_prototypes")) {
    EXPECT_TRUE(golden::Matches(result.Gradient("head." + name.substr(5) + ".weight"), expected));
  } else if (absl::StartsWith(name, "prototypes")) {
    EXPECT_TRUE(golden::Matches(model.Tensor("head." + name + ".weight"), expected));
  } else if (absl::StartsWith(name, "head.")) {
    EXPECT_TRUE(golden::Matches(model.Tensor(name), expected));
  } else {
    golden::CheckSwavState(method, name, expected);
  }
}

void CheckTraining(const golden::Case& golden_case) {
  std::unique_ptr<HeadModel> model = MakeModel(golden_case);
  ASSERT_NE(model, nullptr);
  SwavMethod method(golden::SwavOptionsOf(golden_case), /*seed=*/0);
  golden::SwavRun run(model.get(), golden_case.Count("batch"));
  StepContext& context = run.context();
  ASSERT_OK(method.Prepare(context));
  golden::LoadQueue(golden_case, &method);
  const std::vector<std::unique_ptr<Hook>> hooks = method.MakeHooks();
  ReferenceSgd sgd(golden_case);

  for (size_t index = 0; index < golden_case.steps.size(); ++index) {
    SCOPED_TRACE(absl::StrCat("step ", index));
    const golden::Step& step = golden_case.steps[index];
    context.outputs = model->Forward({step.Input("features")});
    for (const auto& hook : hooks) ASSERT_OK(hook->OnForward(context));
    ASSERT_OK(method.ComputeLoss(context));
    for (NamedParameter& parameter : model->Parameters()) parameter.value.mutable_grad() = at::Tensor();
    context.loss.backward();
    StepResult result = {context.loss, context.outputs[0], GradientsOf(*model), false};
    result.frozen = static_cast<int64_t>(index) < golden_case.Int("frozen_iters");
    for (NamedParameter& parameter : model->Parameters()) {
      const bool drop = result.frozen && absl::StrContains(parameter.name, "prototypes");
      if (drop) parameter.value.mutable_grad() = at::Tensor();
    }
    sgd.Step(model->Parameters());
    for (const auto& hook : hooks) ASSERT_OK(hook->OnUpdate(context));
    ASSERT_OK(method.Advance(context));
    for (const auto& [name, expected] : step.outputs) CheckOutput(name, expected, result, *model, method);
  }
}

// The numbers are of one rank.
std::string LimitOf(const golden::Case& golden_case) {
  return golden_case.Int("world_size", 1) == 1 ? "" : "several ranks";
}

TEST(SwavTrainGolden, StepsAreVissls) {
  golden::RunCategory("swav_train", {{"swav_train", &CheckTraining}}, {}, &LimitOf);
}

}  // namespace
}  // namespace ssl
