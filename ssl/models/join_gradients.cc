// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/join_gradients.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct JoinFunction : public torch::autograd::Function<JoinFunction> {
  static variable_list forward(AutogradContext*, at::TensorList outputs) { return outputs.vec(); }

  // Missing gradients have become zeros before.
  static variable_list backward(AutogradContext*, const variable_list& gradients) { return gradients; }
};

}  // namespace

std::vector<at::Tensor> JoinGradients(std::vector<at::Tensor> outputs) {
  std::vector<size_t> places;
  variable_list differentiable;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    places.push_back(i);
    differentiable.push_back(outputs[i]);
  }
  if (places.size() < 2) return outputs;
  const variable_list joined = JoinFunction::apply(at::TensorList(differentiable));
  for (size_t i = 0; i < places.size(); ++i) outputs[places[i]] = joined[i];
  return outputs;
}

}  // namespace ssl
