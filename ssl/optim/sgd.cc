// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/sgd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/larc.h"
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
    lists_.assign(groups_.size(), MultiTensorGroup());
    for (size_t g = 0; g < groups_.size() && has_momentum(); ++g) lists_[g].AddZeros(groups_[g]);
    return absl::OkStatus();
  }

  std::vector<ParameterGroup>& groups() override { return groups_; }

  void Step() override {
    const at::NoGradGuard no_grad;
    for (size_t g = 0; g < groups_.size(); ++g) {
      MultiTensorGroup& lists = lists_[g];
      if (!lists.Collect(groups_[g])) continue;
      // Without dampening a zero momentum buffer gives what torch's "first step" gives, so is_first_step stays false.
      at::_fused_sgd_(lists.parameters(), lists.gradients(),
                      has_momentum() ? at::TensorList(lists.active_state(0)) : at::TensorList(),
                      groups_[g].weight_decay, options_.momentum, groups_[g].learning_rate, /*dampening=*/0.0,
                      options_.nesterov, /*maximize=*/false, /*is_first_step=*/false);
      lists.Release();
    }
  }

  void VisitState(StateVisitor& visitor) override {
    for (size_t g = 0; g < groups_.size() && has_momentum(); ++g) {
      for (size_t i = 0; i < groups_[g].names.size(); ++i) {
        visitor.Tensor(absl::StrCat("momentum/", groups_[g].names[i]), lists_[g].state()[0][i]);
      }
    }
  }

 private:
  bool has_momentum() const { return options_.momentum != 0.0; }

  const SgdOptions options_;
  std::vector<ParameterGroup> groups_;
  std::vector<MultiTensorGroup> lists_;  // one per group
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const SgdOptions& options) {
  if (options.nesterov && options.momentum == 0.0) {
    return absl::InvalidArgumentError("momentum is 0, expected a value above 0 because nesterov is true");
  }
  return std::make_unique<Sgd>(options);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgdFromConfig(const ConfigNode& params, const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  absl::StatusOr<std::unique_ptr<Optimizer>> sgd = MakeSgd({options.momentum, options.nesterov});
  if (!sgd.ok()) return Annotate(sgd.status(), absl::StrCat(params.location().ToString(), ": config.OPTIMIZER"));
  if (!options.use_larc) return sgd;
  const LarcConfigOptions& larc = options.larc_config;
  return MakeLarc({larc.clip, larc.epsilon, larc.trust_coefficient}, *std::move(sgd));
}

}  // namespace ssl
