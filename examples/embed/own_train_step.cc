// SPDX-License-Identifier: Apache-2.0
//
// A train step of your own, chosen by name in the configuration: sharpness-aware minimisation (Foret et al. 2021,
// arXiv:2010.01412). It climbs to the worst weights within a small radius, takes the gradient there, and updates the
// weights it came from with that gradient. Made of the library's verbs, it keeps the run's number format, gradient
// accumulation, loss scale, reduction over ranks, schedules and hooks. Each rank climbs by its own batch.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/step_verbs.h"
#include "ssl/core/train_step.h"
#include "ssl/methods/swav/swav.h"
#include "tensor_source.h"

namespace {

// A parameter, the gradient of the update's earlier batches, and the value to come back to.
struct Climber {
  at::Tensor parameter;
  at::Tensor accumulated;
  at::Tensor origin;
};

class SharpnessAwareStep : public ssl::TrainStep {
 public:
  explicit SharpnessAwareStep(double radius) : radius_(radius) {}

  absl::Status Train(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::UpdateBatches& batches,
                     ssl::StepContext& context) override {
    for (int64_t batch = 0; batch < context.batches_per_update; ++batch) {
      SSL_RETURN_IF_ERROR(batches.Next());
      SSL_RETURN_IF_ERROR(TrainOn(task, hooks, context));
      SSL_RETURN_IF_ERROR(batches.Finish());
    }
    return absl::OkStatus();
  }

  absl::Status Test(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::StepContext& context) override {
    const at::NoGradGuard no_grad;
    return ssl::ForwardAndLoss(task, hooks, context);
  }

 private:
  absl::Status TrainOn(ssl::SelfSupervisionTask& task, ssl::HookList& hooks, ssl::StepContext& context) {
    SSL_RETURN_IF_ERROR(ssl::ForwardAndLoss(task, hooks, context));
    const at::Tensor loss = context.loss.detach();
    std::vector<Climber> climbers = SetGradientsAside(task);
    SSL_RETURN_IF_ERROR(ssl::Backward(task, context));
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("climbing", [&] { return Climb(&climbers); }));
    SSL_RETURN_IF_ERROR(ssl::RepeatForwardAndLoss(task, context));
    SSL_RETURN_IF_ERROR(ssl::Backward(task, context));
    SSL_RETURN_IF_ERROR(ssl::GuardTorch("returning", [&] { return Return(climbers); }));
    context.loss = loss;
    if (!ssl::EndsUpdate(context)) return absl::OkStatus();
    SSL_RETURN_IF_ERROR(ssl::ReduceGradients(task, context));
    SSL_RETURN_IF_ERROR(ssl::UnscaleGradients(task, context));
    return ssl::Update(task, hooks, context);
  }

  static std::vector<Climber> SetGradientsAside(ssl::SelfSupervisionTask& task) {
    std::vector<Climber> climbers;
    for (ssl::ParameterGroup& group : task.optimizer().groups()) {
      for (at::Tensor& parameter : group.parameters) {
        climbers.push_back({parameter, std::exchange(parameter.mutable_grad(), at::Tensor()), at::Tensor()});
      }
    }
    return climbers;
  }

  // Moves each parameter along the gradient of this batch, all of them together by `radius`, and gives it back the
  // gradient of the earlier ones.
  absl::Status Climb(std::vector<Climber>* climbers) const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const Climber& climber : *climbers) {
      if (climber.parameter.grad().defined()) gradients.push_back(climber.parameter.grad());
    }
    const double norm = at::stack(at::_foreach_norm(gradients)).norm().item<double>();
    // A loss scale that makes float16 overflow leaves no direction: this update will be skipped.
    const double scale = norm > 0.0 && std::isfinite(norm) ? radius_ / norm : 0.0;
    for (Climber& climber : *climbers) {
      at::Tensor gradient = std::exchange(climber.parameter.mutable_grad(), climber.accumulated);
      if (scale == 0.0 || !gradient.defined()) continue;
      climber.origin = climber.parameter.clone();
      climber.parameter.add_(gradient, scale);
    }
    return absl::OkStatus();
  }

  // By copying: adding and subtracting a step does not end where it began, and ranks would drift apart.
  static absl::Status Return(const std::vector<Climber>& climbers) {
    const at::NoGradGuard no_grad;
    for (const Climber& climber : climbers) {
      at::Tensor parameter = climber.parameter;
      if (climber.origin.defined()) parameter.copy_(climber.origin);
    }
    return absl::OkStatus();
  }

  const double radius_;
};

// A configuration may also be text in your program.
constexpr char kConfig[] = R"(
CHECKPOINT: {DIR: ""}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 32}}
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 64}}}
MODEL:
  AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}
  HEAD: {PARAMS: [[swav_head, {dims: [64, 64, 32], num_clusters: [16]}]]}
  TRUNK: {RESNETS: {DEPTH: 18, STEM: small, WIDTH_MULTIPLIER: 0.125}}
TEST_MODEL: False
OPTIMIZER:
  num_epochs: 1
  grad_acc_steps: 2
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
