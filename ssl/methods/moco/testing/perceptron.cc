// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/testing/perceptron.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/relu.h>

#include <cstdlib>

namespace ssl {

Perceptron::Perceptron(const std::vector<int64_t>& dims, bool use_batch_norm, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  first_ = MakeLinear(dims[0], dims[1], /*use_bias=*/true, generator);
  last_ = MakeLinear(dims[1], dims[2], /*use_bias=*/true, generator);
  first_.List("0.", &tensors_);
  if (use_batch_norm) {
    norm_ = MakeBatchNorm(dims[1]);
    norm_.List("1.", &tensors_);
  }
  last_.List(use_batch_norm ? "3." : "2.", &tensors_);
}

std::vector<at::Tensor> Perceptron::Forward(const std::vector<at::Tensor>& views) {
  at::Tensor hidden = first_.Forward(views[0]);
  if (norm_.weight.defined()) hidden = norm_.Forward(hidden, training_);
  return {last_.Forward(at::relu(hidden))};
}

std::vector<NamedParameter> Perceptron::Parameters() {
  std::vector<NamedParameter> parameters;
  for (const ModelTensor& entry : tensors_) {
    if (entry.value.requires_grad()) parameters.push_back({entry.name, entry.value, entry.role == TensorRole::kNorm});
  }
  return parameters;
}

void Perceptron::VisitState(StateVisitor& visitor) {
  const at::NoGradGuard no_grad;
  for (ModelTensor& entry : tensors_) visitor.Tensor(entry.name, entry.value);
}

at::Tensor Perceptron::Get(const std::string& name) const {
  for (const ModelTensor& entry : tensors_) {
    if (entry.name == name) return entry.value;
  }
  std::abort();
}

}  // namespace ssl
