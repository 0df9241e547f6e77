// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/lars.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/where.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/kernels/scale_gradients.h"
#include "ssl/optim/gradient_transform.h"
#include "ssl/optim/momentum_schedule.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/sgd.h"

namespace ssl {
namespace {

class Lars : public GradientTransform {
 public:
  Lars(const LarsOptions& options, std::unique_ptr<Optimizer> sgd)
      : GradientTransform(std::move(sgd)), options_(options) {}

 protected:
  void Transform(const ParameterGroup& group, const std::vector<at::Tensor>& parameters,
                 const std::vector<at::Tensor>& gradients) override {
    if (group.weight_decay != 0.0) at::_foreach_add_(gradients, parameters, group.weight_decay);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (options_.exclude_bias_and_norm && parameters[i].dim() == 1) continue;
      adapted_parameters_.push_back(parameters[i]);
      adapted_gradients_.push_back(gradients[i]);
    }
    if (!adapted_parameters_.empty()) Adapt(group);
    adapted_parameters_.clear();
    adapted_gradients_.clear();
  }

 private:
  void Adapt(const ParameterGroup& group) {
    const auto [parameter_norms, update_norms] = NormsOf(group, adapted_parameters_, adapted_gradients_);
    const at::Tensor adapted = at::logical_and(parameter_norms.gt(0.0), update_norms.gt(0.0));
    const at::Tensor rates = at::where(adapted, parameter_norms * options_.eta / update_norms, 1.0);
    ScaleGradients(adapted_gradients_, adapted_parameters_, /*weight_decay=*/0.0, rates);
  }

  const LarsOptions options_;
  std::vector<at::Tensor> adapted_parameters_;
  std::vector<at::Tensor> adapted_gradients_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLars(const LarsOptions& options) {
  return std::make_unique<Lars>(options,
                                MakeSgd({options.momentum, /*nesterov=*/false, options.momentum_schedule}).value());
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeLarsFromConfig(const ConfigNode& params, const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  SSL_ASSIGN_OR_RETURN(const std::string schedule, MomentumSchedule(params, context));
  return MakeLars({options.momentum, options.eta, options.exclude_bias_and_norm, schedule});
}

}  // namespace ssl
