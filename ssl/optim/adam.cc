// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/rsub.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/multi_tensor_group.h"
#include "ssl/optim/optimizer_options.h"

namespace ssl {
namespace {

// Positions of the state lists.
constexpr size_t kExpAvg = 0;
constexpr size_t kExpAvgSq = 1;
constexpr size_t kStep = 2;
constexpr size_t kMaxExpAvgSq = 3;

enum class WeightDecay { kInGradient, kDecoupled };

class Adam : public Optimizer {
 public:
  Adam(const AdamOptions& options, WeightDecay weight_decay) : options_(options), weight_decay_(weight_decay) {}

  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    SSL_RETURN_IF_ERROR(CheckGroups(groups));
    groups_ = std::move(groups);
    lists_.assign(groups_.size(), MultiTensorGroup());
    for (size_t g = 0; g < groups_.size(); ++g) {
      lists_[g].AddZeros(groups_[g]);
      lists_[g].AddZeros(groups_[g]);
      lists_[g].AddCounters(groups_[g]);
      if (options_.amsgrad) lists_[g].AddZeros(groups_[g]);
    }
    return absl::OkStatus();
  }

  std::vector<ParameterGroup>& groups() override { return groups_; }

  void Step(const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    const at::Tensor counts = found_inf.defined() ? at::rsub(found_inf, 1.0) : at::Tensor();
    for (size_t g = 0; g < groups_.size(); ++g) {
      MultiTensorGroup& lists = lists_[g];
      if (!lists.Collect(groups_[g])) continue;
      counts.defined() ? at::_foreach_add_(lists.active_state(kStep), counts)
                       : at::_foreach_add_(lists.active_state(kStep), 1);
      Update(groups_[g], lists, found_inf);
      lists.Release();
    }
  }

  bool is_recordable() const override { return true; }

  void VisitState(StateVisitor& visitor) override {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::vector<at::Tensor>>& state = lists_[g].state();
      for (size_t i = 0; i < groups_[g].names.size(); ++i) {
        const std::string& name = groups_[g].names[i];
        visitor.Tensor(absl::StrCat("exp_avg/", name), state[kExpAvg][i]);
        visitor.Tensor(absl::StrCat("exp_avg_sq/", name), state[kExpAvgSq][i]);
        visitor.Tensor(absl::StrCat("step/", name), state[kStep][i]);
        if (options_.amsgrad) visitor.Tensor(absl::StrCat("max_exp_avg_sq/", name), state[kMaxExpAvgSq][i]);
      }
    }
  }

 private:
  void Update(const ParameterGroup& group, const MultiTensorGroup& lists, const at::Tensor& found_inf) const {
    const auto update_at = [&](auto fused, const auto& learning_rate) {
      fused(lists.parameters(), lists.gradients(), lists.active_state(kExpAvg), lists.active_state(kExpAvgSq),
            options_.amsgrad ? at::TensorList(lists.active_state(kMaxExpAvgSq)) : at::TensorList(),
            lists.active_state(kStep), learning_rate, options_.beta1, options_.beta2, group.weight_decay,
            options_.epsilon, options_.amsgrad, /*maximize=*/false, /*grad_scale=*/std::nullopt,
            OptionalTensor(found_inf));
    };
    const auto update = [&](auto fused) {
      const at::Tensor& tensor = group.learning_rate_tensor;
      tensor.defined() ? update_at(fused, tensor) : update_at(fused, group.learning_rate);
    };
    if (weight_decay_ == WeightDecay::kDecoupled) {
      update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    }
  }

  const AdamOptions options_;
  const WeightDecay weight_decay_;
  std::vector<ParameterGroup> groups_;
  std::vector<MultiTensorGroup> lists_;  // one per group
};

absl::StatusOr<std::unique_ptr<Optimizer>> Make(const AdamOptions& options, WeightDecay weight_decay) {
  for (const double beta : {options.beta1, options.beta2}) {
    if (beta < 0.0 || beta >= 1.0) {
      return absl::InvalidArgumentError(absl::StrCat("beta is ", beta, ", expected a value of at least 0 and below 1"));
    }
  }
  return std::make_unique<Adam>(options, weight_decay);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeFromConfig(const ConfigNode& params, WeightDecay weight_decay) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  const std::string place = absl::StrCat(params.location().ToString(), ": config.OPTIMIZER");
  if (const ConfigNode& schedule = options.param_schedulers.momentum; schedule.is_map()) {
    return absl::InvalidArgumentError(absl::StrCat(
        schedule.location().ToString(), ": config.OPTIMIZER.param_schedulers.momentum: '", options.name,
        "' has betas, which stay, and no momentum; expected no schedule of it, or name sgd, lars or rmsprop"));
  }
  if (options.betas.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(place, ".betas has ", options.betas.size(), " entries, expected 2"));
  }
  absl::StatusOr<std::unique_ptr<Optimizer>> optimizer =
      Make({options.betas[0], options.betas[1], options.epsilon, options.amsgrad}, weight_decay);
  if (optimizer.ok()) return optimizer;
  return Annotate(optimizer.status(), place);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const AdamOptions& options) {
  return Make(options, WeightDecay::kInGradient);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamW(const AdamOptions& options) {
  return Make(options, WeightDecay::kDecoupled);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamFromConfig(const ConfigNode& params, const BuildContext& context) {
  return MakeFromConfig(params, WeightDecay::kInGradient);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamWFromConfig(const ConfigNode& params, const BuildContext& context) {
  return MakeFromConfig(params, WeightDecay::kDecoupled);
}

}  // namespace ssl
