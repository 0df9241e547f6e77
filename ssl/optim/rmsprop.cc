// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/rmsprop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/momentum_schedule.h"
#include "ssl/optim/multi_tensor_group.h"
#include "ssl/optim/optimizer_options.h"

namespace ssl {
namespace {

class Rmsprop : public Optimizer {
 public:
  explicit Rmsprop(const RmspropOptions& options) : options_(options) {}

  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    SSL_RETURN_IF_ERROR(CheckGroups(groups));
    groups_ = std::move(groups);
    SetMomentum(options_.momentum, options_.momentum_schedule, &groups_);
    lists_.assign(groups_.size(), MultiTensorGroup());
    for (size_t g = 0; g < groups_.size(); ++g) {
      square_avg_ = lists_[g].AddZeros(groups_[g]);
      if (has_momentum()) momentum_ = lists_[g].AddZeros(groups_[g]);
      if (options_.centered) grad_avg_ = lists_[g].AddZeros(groups_[g]);
    }
    return absl::OkStatus();
  }

  std::vector<ParameterGroup>& groups() override { return groups_; }

  void Step(const at::Tensor& found_inf) override {
    if (SkipsUpdate(found_inf)) return;
    const at::NoGradGuard no_grad;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!lists_[g].Collect(groups_[g])) continue;
      Update(groups_[g], lists_[g]);
      lists_[g].Release();
    }
  }

  void VisitState(StateVisitor& visitor) override {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::vector<at::Tensor>>& state = lists_[g].state();
      for (size_t i = 0; i < groups_[g].names.size(); ++i) {
        const std::string& name = groups_[g].names[i];
        visitor.Tensor(absl::StrCat("square_avg/", name), state[square_avg_][i]);
        if (has_momentum()) visitor.Tensor(absl::StrCat("momentum/", name), state[momentum_][i]);
        if (options_.centered) visitor.Tensor(absl::StrCat("grad_avg/", name), state[grad_avg_][i]);
      }
    }
  }

 private:
  bool has_momentum() const { return options_.momentum != 0.0 || !options_.momentum_schedule.empty(); }

  void Update(const ParameterGroup& group, const MultiTensorGroup& lists) const {
    const std::vector<at::Tensor>& gradients = lists.gradients();
    if (group.weight_decay != 0.0) at::_foreach_add_(gradients, lists.parameters(), group.weight_decay);
    const std::vector<at::Tensor>& square_avg = lists.active_state(square_avg_);
    at::_foreach_mul_(square_avg, options_.alpha);
    at::_foreach_addcmul_(square_avg, gradients, gradients, 1.0 - options_.alpha);
    const std::vector<at::Tensor> roots = Roots(lists);
    if (!has_momentum()) {
      at::_foreach_addcdiv_(lists.parameters(), gradients, roots, -group.learning_rate);
      return;
    }
    const std::vector<at::Tensor>& momentum = lists.active_state(momentum_);
    at::_foreach_mul_(momentum, group.momentum);
    at::_foreach_addcdiv_(momentum, gradients, roots);
    at::_foreach_add_(lists.parameters(), momentum, -group.learning_rate);
  }

  // The denominators.
  std::vector<at::Tensor> Roots(const MultiTensorGroup& lists) const {
    std::vector<at::Tensor> roots;
    if (options_.centered) {
      const std::vector<at::Tensor>& grad_avg = lists.active_state(grad_avg_);
      at::_foreach_lerp_(grad_avg, lists.gradients(), 1.0 - options_.alpha);
      roots = at::_foreach_addcmul(lists.active_state(square_avg_), grad_avg, grad_avg, -1.0);
      at::_foreach_sqrt_(roots);
    } else {
      roots = at::_foreach_sqrt(lists.active_state(square_avg_));
    }
    at::_foreach_add_(roots, options_.epsilon);
    return roots;
  }

  const RmspropOptions options_;
  std::vector<ParameterGroup> groups_;
  std::vector<MultiTensorGroup> lists_;  // one per group
  // Positions of the state lists.
  size_t square_avg_ = 0;
  size_t momentum_ = 0;
  size_t grad_avg_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> MakeRmsprop(const RmspropOptions& options) { return std::make_unique<Rmsprop>(options); }

absl::StatusOr<std::unique_ptr<Optimizer>> MakeRmspropFromConfig(const ConfigNode& params,
                                                                 const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  SSL_ASSIGN_OR_RETURN(const std::string schedule, MomentumSchedule(params, context));
  return MakeRmsprop({options.alpha, options.epsilon, options.momentum, options.centered, schedule});
}

}  // namespace ssl
