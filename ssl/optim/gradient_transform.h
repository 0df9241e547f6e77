// SPDX-License-Identifier: Apache-2.0
//
// An optimizer that changes the gradients of a step, weight decay included, and lets another optimizer update with them
// and without weight decay. Its state is the other one's. Used by one thread.
#ifndef SSL_OPTIM_GRADIENT_TRANSFORM_H_
#define SSL_OPTIM_GRADIENT_TRANSFORM_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "ssl/core/optimizer.h"

namespace ssl {

class GradientTransform : public Optimizer {
 public:
  explicit GradientTransform(std::unique_ptr<Optimizer> inner);

  absl::Status Initialize(std::vector<ParameterGroup> groups) final;
  std::vector<ParameterGroup>& groups() final { return inner_->groups(); }
  void Step(const at::Tensor& found_inf) final;
  bool is_recordable() const final { return inner_->is_recordable(); }
  void VisitState(StateVisitor& visitor) final { inner_->VisitState(visitor); }

 protected:
  // [number of tensors] each: |p| and |g| of whole parameters and gradients, on all ranks, also where the group has
  // shards of them. Collective then, and throws c10::DistBackendError.
  struct Norms {
    at::Tensor parameters;
    at::Tensor gradients;
  };
  static Norms NormsOf(const ParameterGroup& group, const std::vector<at::Tensor>& parameters,
                       const std::vector<at::Tensor>& gradients);

  // Changes `gradients`, those of `parameters`, in place; both lists are parallel and not empty. Without a graph.
  virtual void Transform(const ParameterGroup& group, const std::vector<at::Tensor>& parameters,
                         const std::vector<at::Tensor>& gradients) = 0;

 private:
  void TransformGradients();

  const std::unique_ptr<Optimizer> inner_;
  // Kept from step to step for their capacity.
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;
  std::vector<double> weight_decays_;
};

}  // namespace ssl

#endif  // SSL_OPTIM_GRADIENT_TRANSFORM_H_
