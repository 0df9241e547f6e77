// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/multi_tensor_group.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/kernels/same_layout.h"

namespace ssl {
namespace {

at::Tensor InLayoutOf(const at::Tensor& gradient, const at::Tensor& parameter) {
  at::Tensor copy = at::empty_like(parameter);
  copy.copy_(gradient);
  return copy;
}

absl::Status CheckParameter(const std::string& name, const at::Tensor& parameter) {
  if (!parameter.defined()) return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is undefined"));
  if (!parameter.is_floating_point()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", name, " has the type ", toString(parameter.scalar_type()), ", expected a float"));
  }
  if (parameter.is_sparse() || !parameter.is_non_overlapping_and_dense()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", name, " has a memory layout with gaps, expected a dense one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGroups(const std::vector<ParameterGroup>& groups) {
  std::set<std::string> names;
  for (const ParameterGroup& group : groups) {
    if (group.names.size() != group.parameters.size()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter group ", group.name, " has ", group.names.size(),
                                                     " names, expected ", group.parameters.size()));
    }
    for (size_t i = 0; i < group.names.size(); ++i) {
      if (!names.insert(group.names[i]).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter ", group.names[i], " stands twice in the parameter groups, expected once"));
      }
      const absl::Status status = CheckParameter(group.names[i], group.parameters[i]);
      if (!status.ok()) return status;
    }
  }
  if (names.empty()) return absl::InvalidArgumentError("parameter groups are empty, expected something to train");
  return absl::OkStatus();
}

size_t MultiTensorGroup::AddZeros(const ParameterGroup& group) {
  std::vector<at::Tensor> list;
  for (const at::Tensor& parameter : group.parameters) list.push_back(at::zeros_like(parameter.detach()));
  state_.push_back(std::move(list));
  active_state_.emplace_back();
  return state_.size() - 1;
}

size_t MultiTensorGroup::AddCounters(const ParameterGroup& group) {
  std::vector<at::Tensor> list;
  for (const at::Tensor& parameter : group.parameters) {
    list.push_back(at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false)));
  }
  state_.push_back(std::move(list));
  active_state_.emplace_back();
  return state_.size() - 1;
}

bool MultiTensorGroup::Collect(const ParameterGroup& group) {
  Release();
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const at::Tensor& parameter = group.parameters[i];
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    parameters_.push_back(parameter);
    gradients_.push_back(SameLayout(gradient, parameter) ? gradient : InLayoutOf(gradient, parameter));
    for (size_t k = 0; k < state_.size(); ++k) active_state_[k].push_back(state_[k][i]);
  }
  return !parameters_.empty();
}

void MultiTensorGroup::Release() {
  parameters_.clear();
  gradients_.clear();
  for (std::vector<at::Tensor>& list : active_state_) list.clear();
}

}  // namespace ssl
