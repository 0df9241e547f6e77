// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/testing/perceptron.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/relu.h>

#include "absl/strings/str_cat.h"

namespace ssl {

Perceptron::Perceptron(const std::vector<int64_t>& dims, bool use_batch_norm, int64_t seed) {
  at::Generator generator = MakeGenerator(seed);
  int64_t position = 0;  // as in a sequential network, where a ReLU has one as well
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    linear_.push_back(MakeLinear(dims[i], dims[i + 1], /*use_bias=*/true, generator));
    linear_.back().List(absl::StrCat(position++, "."), &tensors_);
    if (i + 2 == dims.size()) break;
    if (use_batch_norm) {
      norms_.push_back(MakeBatchNorm(dims[i + 1]));
      norms_.back().List(absl::StrCat(position++, "."), &tensors_);
    }
    ++position;
  }
}

std::vector<at::Tensor> Perceptron::Forward(const std::vector<at::Tensor>& views) {
  at::Tensor rows = views[0];
  for (size_t i = 0; i + 1 < linear_.size(); ++i) {
    rows = linear_[i].Forward(rows);
    if (!norms_.empty()) rows = norms_[i].Forward(rows, NormModeFor(training_));
    rows = at::relu(rows);
  }
  return {linear_.back().Forward(rows)};
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
  return at::Tensor();
}

}  // namespace ssl
