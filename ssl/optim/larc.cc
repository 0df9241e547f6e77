// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/larc.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/where.h>

#include <utility>
#include <vector>

#include "ssl/kernels/scale_gradients.h"
#include "ssl/optim/gradient_transform.h"

namespace ssl {
namespace {

class Larc : public GradientTransform {
 public:
  Larc(const LarcOptions& options, std::unique_ptr<Optimizer> inner)
      : GradientTransform(std::move(inner)), options_(options) {}

 protected:
  // Rates are one vector [number of parameters], because arithmetic on many scalars would be as many operations.
  void Transform(const ParameterGroup& group, const std::vector<at::Tensor>& parameters,
                 const std::vector<at::Tensor>& gradients) override {
    const auto [parameter_norms, gradient_norms] = NormsOf(group, parameters, gradients);
    at::Tensor rates = parameter_norms * options_.trust_coefficient /
                       (gradient_norms + parameter_norms * group.weight_decay + options_.epsilon);
    if (options_.clip) rates = at::clamp_max(InUnitsOfLearningRate(rates, group), 1.0);
    // A gradient of zero must stay so although the decay of all parameters is added at once; a parameter of zero has
    // none.
    rates = at::where(gradient_norms == 0.0, 0.0, rates);
    rates = at::where(parameter_norms == 0.0, 1.0, rates);
    ScaleGradients(gradients, parameters, group.weight_decay, rates);
  }

 private:
  static at::Tensor InUnitsOfLearningRate(const at::Tensor& rates, const ParameterGroup& group) {
    const at::Tensor& tensor = group.learning_rate_tensor;
    return tensor.defined() ? rates / tensor : rates / group.learning_rate;
  }

  const LarcOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLarc(const LarcOptions& options, std::unique_ptr<Optimizer> inner) {
  return std::make_unique<Larc>(options, std::move(inner));
}

}  // namespace ssl
