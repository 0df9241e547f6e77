// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/sgd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/where.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/larc.h"
#include "ssl/optim/momentum_schedule.h"
#include "ssl/optim/multi_tensor_group.h"
#include "ssl/optim/optimizer_options.h"

namespace ssl {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    SSL_RETURN_IF_ERROR(CheckGroups(groups));
    groups_ = std::move(groups);
    SetMomentum(options_.momentum, options_.momentum_schedule, &groups_);
    lists_.assign(groups_.size(), MultiTensorGroup());
    for (size_t g = 0; g < groups_.size() && has_momentum(); ++g) lists_[g].AddZeros(groups_[g]);
    return absl::OkStatus();
  }

  std::vector<ParameterGroup>& groups() override { return groups_; }

  void Step(const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    for (size_t g = 0; g < groups_.size(); ++g) {
      MultiTensorGroup& lists = lists_[g];
      if (!lists.Collect(groups_[g])) continue;
      Update(groups_[g], lists, found_inf);
      lists.Release();
    }
  }

  bool is_recordable() const override { return true; }

  void VisitState(StateVisitor& visitor) override {
    for (size_t g = 0; g < groups_.size() && has_momentum(); ++g) {
      for (size_t i = 0; i < groups_[g].names.size(); ++i) {
        visitor.Tensor(absl::StrCat("momentum/", groups_[g].names[i]), lists_[g].state()[0][i]);
      }
    }
  }

 private:
  bool has_momentum() const { return options_.momentum != 0.0 || !options_.momentum_schedule.empty(); }

  void Update(const ParameterGroup& group, const MultiTensorGroup& lists, const at::Tensor& found_inf) const {
    const double momentum = has_momentum() ? group.momentum : 0.0;
    const bool uses_buffers = momentum != 0.0;
    // The fused operation takes no buffers at 0 and would leave them as they were when a schedule came there.
    if (has_momentum() && !uses_buffers) StartAnew(group, lists, found_inf);
    // Without dampening a zero momentum buffer gives what torch's "first step" gives, so is_first_step stays false.
    const auto update = [&](const auto& learning_rate) {
      at::_fused_sgd_(lists.parameters(), lists.gradients(),
                      uses_buffers ? at::TensorList(lists.active_state(0)) : at::TensorList(), group.weight_decay,
                      momentum, learning_rate, /*dampening=*/0.0, options_.nesterov, /*maximize=*/false,
                      /*is_first_step=*/false, /*grad_scale=*/{}, OptionalTensor(found_inf));
    };
    group.learning_rate_tensor.defined() ? update(group.learning_rate_tensor) : update(group.learning_rate);
  }

  // v = g
  static void StartAnew(const ParameterGroup& group, const MultiTensorGroup& lists, const at::Tensor& found_inf) {
    const std::vector<at::Tensor>& momenta = lists.active_state(0);
    std::vector<at::Tensor> values = lists.gradients();
    if (group.weight_decay != 0.0) values = at::_foreach_add(values, lists.parameters(), group.weight_decay);
    if (found_inf.defined()) {
      const at::Tensor counts = found_inf.eq(0.0);
      for (size_t i = 0; i < values.size(); ++i) values[i] = at::where(counts, values[i], momenta[i]);
    }
    at::_foreach_copy_(momenta, values);
  }

  const SgdOptions options_;
  std::vector<ParameterGroup> groups_;
  std::vector<MultiTensorGroup> lists_;  // one per group
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const SgdOptions& options) {
  if (options.nesterov && options.momentum == 0.0 && options.momentum_schedule.empty()) {
    return absl::InvalidArgumentError("momentum is 0, expected a value above 0 because nesterov is true");
  }
  return std::make_unique<Sgd>(options);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgdFromConfig(const ConfigNode& params, const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  SSL_ASSIGN_OR_RETURN(const std::string schedule, MomentumSchedule(params, context));
  absl::StatusOr<std::unique_ptr<Optimizer>> sgd = MakeSgd({options.momentum, options.nesterov, schedule});
  if (!sgd.ok()) return Annotate(sgd.status(), absl::StrCat(params.location().ToString(), ": config.OPTIMIZER"));
  if (!options.use_larc) return sgd;
  const LarcConfigOptions& larc = options.larc_config;
  return MakeLarc({larc.clip, larc.epsilon, larc.trust_coefficient}, *std::move(sgd));
}

}  // namespace ssl
