// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/gradient_transform.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <cstddef>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "ssl/base/collective_check.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

GradientTransform::GradientTransform(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}

absl::Status GradientTransform::Initialize(std::vector<ParameterGroup> groups) {
  return inner_->Initialize(std::move(groups));
}

void GradientTransform::Step(const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  TransformGradients();
  weight_decays_.clear();
  for (ParameterGroup& group : groups()) weight_decays_.push_back(std::exchange(group.weight_decay, 0.0));
  // Also when the update throws: a host may go on with the optimizer.
  const absl::Cleanup restore = [this] {
    for (size_t g = 0; g < weight_decays_.size(); ++g) groups()[g].weight_decay = weight_decays_[g];
  };
  inner_->Step(found_inf);
}

// One operation for all of them; squares in float64, so that float32's range holds.
GradientTransform::Norms GradientTransform::NormsOf(const ParameterGroup& group,
                                                    const std::vector<at::Tensor>& parameters,
                                                    const std::vector<at::Tensor>& gradients) {
  Norms norms = {at::stack(at::_foreach_norm(parameters)), at::stack(at::_foreach_norm(gradients))};
  if (group.shard_ranks == nullptr) return norms;
  at::Tensor squares = at::stack({norms.parameters, norms.gradients}).to(at::kDouble).square();
  CheckCollective(group.shard_ranks->AllReduce(squares, ReduceOp::kSum), "norms over ranks");
  const at::Tensor of_all = squares.sqrt().to(norms.parameters.scalar_type());
  return {of_all[0], of_all[1]};
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
