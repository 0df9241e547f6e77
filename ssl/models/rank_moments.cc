// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/rank_moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <tuple>

#include "ssl/base/collective_check.h"

namespace ssl {

ChannelMoments MomentsOf(const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  const int64_t channels = input.size(1);
  const at::TensorOptions wide = input.options().dtype(at::kDouble);
  if (input.numel() == 0) return {at::zeros({channels}, wide), at::zeros({channels}, wide), at::zeros({}, wide)};
  const at::Tensor count = at::full({}, static_cast<double>(input.numel() / channels), wide);
  // The CPU's kernel returns statistics in the format of its input.
  const bool is_short = input.is_cpu() && at::isReducedFloatingType(input.scalar_type());
  const auto [mean, variance] = at::batch_norm_update_stats(is_short ? input.to(at::kFloat) : input,
                                                            /*running_mean=*/{}, /*running_var=*/{}, /*momentum=*/0.0);
  return {mean.to(at::kDouble), variance.to(at::kDouble), count};
}

at::Tensor SumOverRanks(const at::Tensor& own, Communicator& group) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = own.clone();
  CheckCollective(group.AllReduce(sum, ReduceOp::kSum), "batch norm over ranks");
  return sum;
}

ChannelMoments MomentsOfRanks(const ChannelMoments& own, Communicator& group) {
  const at::NoGradGuard no_grad;
  const int64_t channels = own.mean.numel();
  const at::Tensor sums = SumOverRanks(
      at::cat({own.mean * own.count, (own.variance + own.mean.square()) * own.count, own.count.view({1})}), group);
  ChannelMoments all;
  all.count = sums.select(0, 2 * channels);
  all.mean = sums.narrow(0, 0, channels) / all.count;
  all.variance = (sums.narrow(0, channels, channels) / all.count - all.mean.square()).clamp_min(0.0);
  return all;
}

void MoveRunningStatistics(const ChannelMoments& moments, double momentum, at::Tensor running_mean,
                           at::Tensor running_var) {
  const at::NoGradGuard no_grad;
  const at::Tensor unbiased = moments.variance * moments.count / (moments.count - 1.0).clamp_min(1.0);
  running_mean.copy_(running_mean.to(at::kDouble) * (1.0 - momentum) + moments.mean * momentum);
  running_var.copy_(running_var.to(at::kDouble) * (1.0 - momentum) + unbiased * momentum);
}

const ChannelMoments& MomentsRecord::Next() {
  TORCH_CHECK(next_ < moments_.size(), "a second pass has more than the ", moments_.size(),
              " layers of batch norm over ranks that the first one had");
  return moments_[next_++];
}

ChannelMoments MomentsOfPass(NormMode mode, absl::FunctionRef<ChannelMoments()> own, Communicator& group) {
  MomentsRecord* const record = mode.record();
  if (mode == NormMode::kRecompute) {
    TORCH_CHECK(record != nullptr, "batch norm over ranks runs a second time without a record of the first");
    return record->Next();
  }
  ChannelMoments all = MomentsOfRanks(own(), group);
  if (record != nullptr) record->Add(all);
  return all;
}

}  // namespace ssl
