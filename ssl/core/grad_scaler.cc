// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "ssl/base/collective_check.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options),
      scale_(at::full({}, options.static_scale > 0.0 ? options.static_scale : options.initial_scale, at::kFloat)),
      growth_tracker_(at::zeros({}, at::kInt)),
      found_inf_(at::zeros({}, at::kFloat)),
      skipped_updates_(at::zeros({}, at::kLong)) {}

at::Tensor GradScaler::Scale(const at::Tensor& loss) {
  MoveTo(loss.device());
  return loss * scale_;
}

const at::Tensor& GradScaler::Unscale(std::vector<ParameterGroup>& groups) {
  const at::NoGradGuard no_grad;
  for (const ParameterGroup& group : groups) {
    for (const at::Tensor& parameter : group.parameters) {
      if (parameter.grad().defined()) gradients_.push_back(parameter.grad());
    }
  }
  found_inf_.zero_();
  if (!gradients_.empty()) {
    MoveTo(gradients_[0].device());
    // In float64, as torch does: the reciprocal of a large scale is not a float32.
    const at::Tensor inverse = at::reciprocal(scale_.to(at::kDouble)).to(at::kFloat);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients_, found_inf_, inverse);
  }
  gradients_.clear();
  // Of whole gradients, every rank has seen the overflow of any. Of shards, one rank alone has.
  const auto shards = std::find_if(groups.begin(), groups.end(),
                                   [](const ParameterGroup& group) { return group.shard_ranks != nullptr; });
  if (shards != groups.end()) {
    CheckCollective(shards->shard_ranks->AllReduce(found_inf_, ReduceOp::kMax), "looking for overflows");
  }
  skipped_updates_.add_(1).mul_(found_inf_.to(at::kLong));
  return found_inf_;
}

void GradScaler::Update() {
  if (options_.static_scale > 0.0) return;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
}

double GradScaler::scale() const { return scale_.item<float>(); }

int64_t GradScaler::skipped_updates() const { return skipped_updates_.item<int64_t>(); }

void GradScaler::VisitState(StateVisitor& visitor) {
  visitor.Tensor("scale", scale_);
  visitor.Tensor("growth_tracker", growth_tracker_);
  visitor.Tensor("skipped_updates", skipped_updates_);
}

void GradScaler::MoveTo(const at::Device& device) {
  if (scale_.device() == device) return;
  scale_ = scale_.to(device);
  growth_tracker_ = growth_tracker_.to(device);
  found_inf_ = found_inf_.to(device);
  skipped_updates_ = skipped_updates_.to(device);
}

}  // namespace ssl
