// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/gradient_transform.h"

#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace ssl {

GradientTransform::GradientTransform(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}

absl::Status GradientTransform::Initialize(std::vector<ParameterGroup> groups) {
  return inner_->Initialize(std::move(groups));
}

void GradientTransform::Step() {
  const at::NoGradGuard no_grad;
  TransformGradients();
  weight_decays_.clear();
  for (ParameterGroup& group : groups()) weight_decays_.push_back(std::exchange(group.weight_decay, 0.0));
  // Also when the update throws: a host may go on with the optimizer.
  const absl::Cleanup restore = [this] {
    for (size_t g = 0; g < weight_decays_.size(); ++g) groups()[g].weight_decay = weight_decays_[g];
  };
  inner_->Step();
}

void GradientTransform::TransformGradients() {
  for (const ParameterGroup& group : groups()) {
    for (const at::Tensor& parameter : group.parameters) {
      if (!parameter.grad().defined()) continue;
      parameters_.push_back(parameter);
      gradients_.push_back(parameter.grad());
    }
    if (!parameters_.empty()) Transform(group, parameters_, gradients_);
    parameters_.clear();
    gradients_.clear();
  }
}

}  // namespace ssl
