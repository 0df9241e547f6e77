// SPDX-License-Identifier: Apache-2.0
//
// A train step of your own, chosen by name in the configuration: sharpness-aware minimisation (Foret et al. 2021,
// arXiv:2010.01412). It climbs to the worst weights within a small radius, takes the gradient there, and updates the
// weights it came from with that gradient.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_step.h"
#include "ssl/methods/swav/swav.h"
#include "tensor_source.h"

namespace {

class SharpnessAwareStep : public ssl::TrainStep {
 public:
  explicit SharpnessAwareStep(double radius) : radius_(radius) {}

  absl::Status Train(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::StepContext& context) override {
    SSL_RETURN_IF_ERROR(ForwardAndBackward(task, hooks, context));
    std::vector<at::Tensor> steps;
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("climbing", [&] { return Climb(task, &steps); }));
    SSL_RETURN_IF_ERROR(ForwardAndBackward(task, hooks, context));
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("returning", [&] { return Return(task, steps); }));
    SSL_RETURN_IF_ERROR(hooks.Run(&ssl::Hook::OnBackward, context));
    task.UpdateSchedules(ssl::Schedule::UpdateInterval::kStep);
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("update", [&] {
      const at::NoGradGuard no_grad;
      task.optimizer().Step();
      return absl::OkStatus();
    }));
    return hooks.Run(&ssl::Hook::OnUpdate, context);
  }

  absl::Status Test(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::StepContext& context) override {
    const at::NoGradGuard no_grad;
    return ForwardAndLoss(task, hooks, context);
  }

 private:
  static absl::Status ForwardAndLoss(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::StepContext& context) {
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("forward", [&] { return task.method().Forward(context); }));
    SSL_RETURN_IF_ERROR(hooks.Run(&ssl::Hook::OnForward, context));
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("loss", [&] { return task.method().ComputeLoss(context); }));
    return hooks.Run(&ssl::Hook::OnLossAndMeter, context);
  }

  static absl::Status ForwardAndBackward(ssl::SelfSupervisionTask& task, ssl::HookList& hooks,
                                         ssl::StepContext& context) {
    SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
    return ssl::GuardTorch("backward", [&] {
      task.optimizer().ZeroGrad();
      context.loss.backward();
      context.loss = context.loss.detach();
      return absl::OkStatus();
    });
  }

  // Moves each parameter along its gradient, all of them together by `radius`.
  absl::Status Climb(ssl::SelfSupervisionTask& task, std::vector<at::Tensor>* steps) const {
    const at::NoGradGuard no_grad;
    at::Tensor squares = at::zeros({});
    for (const ssl::ParameterGroup& group : task.optimizer().groups()) {
      for (const at::Tensor& parameter : group.parameters) squares.add_(parameter.grad().square().sum());
    }
    const at::Tensor scale = squares.sqrt_().add_(1e-12).reciprocal_().mul_(radius_);
    for (const ssl::ParameterGroup& group : task.optimizer().groups()) {
      for (at::Tensor parameter : group.parameters) {
        steps->push_back(parameter.grad().mul(scale));
        parameter.add_(steps->back());
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Return(ssl::SelfSupervisionTask& task, const std::vector<at::Tensor>& steps) {
    const at::NoGradGuard no_grad;
    size_t i = 0;
    for (const ssl::ParameterGroup& group : task.optimizer().groups()) {
      for (at::Tensor parameter : group.parameters) parameter.sub_(steps[i++]);
    }
    return absl::OkStatus();
  }

  const double radius_;
};

// A configuration may also be text in your program.
constexpr char kConfig[] = R"(
CHECKPOINT: {DIR: ""}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 32}}
LOSS: {name: swav_loss}
MODEL:
  HEAD: {PARAMS: [[swav_head, {dims: [64, 64, 32], num_clusters: [16]}]]}
  TRUNK: {RESNETS: {DEPTH: 18, STEM: small, WIDTH_MULTIPLIER: 0.125}}
TEST_MODEL: False
OPTIMIZER:
  num_epochs: 1
  param_schedulers: {lr: {name: cosine, start_value: 0.1}}
TRAINER: {TRAIN_STEP_NAME: sharpness_aware_step}
)";

absl::Status Run() {
  ssl::Registries registries;
  SSL_RETURN_IF_ERROR(ssl::RegisterSwav(&registries));
  SSL_RETURN_IF_ERROR(registries.train_steps.Register(
      "sharpness_aware_step",
      [](const ssl::ConfigNode& params,
         const ssl::BuildContext& context) -> absl::StatusOr<std::unique_ptr<ssl::TrainStep>> {
        return std::make_unique<SharpnessAwareStep>(/*radius=*/0.05);
      }));
  SSL_ASSIGN_OR_RETURN(const ssl::ConfigNode config, ssl::ParseYaml(kConfig, "built in", nullptr));
  ssl::SessionOptions options;
  options.train_source = std::make_unique<TensorSource>();
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ssl::Session> session,
                       ssl::Session::Create(config, registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<LossPrinter>()));
  return session->Train().status();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
