// SPDX-License-Identifier: Apache-2.0
//
// What a multi-tensor operation needs of one parameter group in one step: parallel lists of the parameters that have a
// gradient, their gradients and their optimizer state.
//
// The fused CPU kernels walk all tensors of one position as flat arrays and check no strides, so a gradient with
// another memory layout than its parameter is copied into the parameter's layout first (autograd hands out equal
// layouts; a host's own gradients may not be). Lists keep their capacity: a step in the steady state allocates nothing.
// Used by one thread.
#ifndef SSL_OPTIM_MULTI_TENSOR_GROUP_H_
#define SSL_OPTIM_MULTI_TENSOR_GROUP_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/optimizer.h"

namespace ssl {

// OK when the groups can be optimized: every parameter is a dense floating tensor with a name that no other has.
absl::Status CheckGroups(const std::vector<ParameterGroup>& groups);

// As the fused operations take it.
inline std::optional<at::Tensor> OptionalTensor(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

class MultiTensorGroup {
 public:
  // Adds a state list: zeros in the layout of each parameter. Returns its position in state().
  size_t AddZeros(const ParameterGroup& group);
  // Adds a state list of float32 scalars 0 on each parameter's device: the step counts of the fused Adam kernels.
  size_t AddCounters(const ParameterGroup& group);

  // state()[k][i]: state list k of the group's parameter i.
  std::vector<std::vector<at::Tensor>>& state() { return state_; }

  // Fills the lists below. False when no parameter has a gradient.
  bool Collect(const ParameterGroup& group);
  // Empties them, so that no gradient outlives ZeroGrad.
  void Release();

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  const std::vector<at::Tensor>& active_state(size_t k) const { return active_state_[k]; }

 private:
  std::vector<std::vector<at::Tensor>> state_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;
  std::vector<std::vector<at::Tensor>> active_state_;
};

}  // namespace ssl

#endif  // SSL_OPTIM_MULTI_TENSOR_GROUP_H_
