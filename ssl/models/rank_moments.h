// SPDX-License-Identifier: Apache-2.0
//
// The mean and the variance of channels over the batches of several ranks: what batch norm shares when it is
// synchronised (torch.nn.SyncBatchNorm). Each of the ranks gives its own n values per channel, their mean m and their
// variance v; with sums over ranks,
//
//   N = sum n,  mean = sum n m / N,  variance = sum n (v + m^2) / N - mean^2
//
// Ranks may have batches of different sizes, empty ones included. The sums are float64: the difference has about
// 16 - 2 log10(|mean| / deviation) digits, more than float32 maps hold. They are added in one all-reduce, whose result
// is the same on all ranks.
//
// Tensors stay on the device that they are on. Functions throw LibTorch's exceptions; a failed communicator is a
// c10::DistBackendError.
#ifndef SSL_MODELS_RANK_MOMENTS_H_
#define SSL_MODELS_RANK_MOMENTS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ssl/distributed/communicator.h"
#include "ssl/models/norm_mode.h"

namespace ssl {

struct ChannelMoments {
  at::Tensor mean;      // [C] float64; zero without values
  at::Tensor variance;  // [C] float64, of the population: the mean squared distance from the mean
  at::Tensor count;     // [] float64: values per channel
};

// Of this rank's values. input: [N, C] or [N, C, H, W], any floating type.
ChannelMoments MomentsOf(const at::Tensor& input);

// Of the values of all ranks in `group`. Collective.
ChannelMoments MomentsOfRanks(const ChannelMoments& own, Communicator& group);

// The sum over all ranks in `group`; `own` stays. Collective.
at::Tensor SumOverRanks(const at::Tensor& own, Communicator& group);

// Moves running statistics by `momentum` towards the moments, the variance as the unbiased one, N / (N - 1) variance.
void MoveRunningStatistics(const ChannelMoments& moments, double momentum, at::Tensor running_mean,
                           at::Tensor running_var);

// What the layers of a pass that runs twice have got from the other ranks, in the order of the layers.
class MomentsRecord {
 public:
  void Add(ChannelMoments moments) { moments_.push_back(std::move(moments)); }
  // Before each repetition of the pass.
  void Rewind() { next_ = 0; }
  // What the layer at this place of the pass has added.
  const ChannelMoments& Next();

 private:
  std::vector<ChannelMoments> moments_;
  size_t next_ = 0;
};

// What a layer normalises by in a pass of `mode`, which is no evaluation: MomentsOfRanks(own(), group). A pass that is
// run again asks nobody, so that ranks need not run the same parts of a network again, and has the same values bit for
// bit; it calls for the record of the first one.
ChannelMoments MomentsOfPass(NormMode mode, absl::FunctionRef<ChannelMoments()> own, Communicator& group);

}  // namespace ssl

#endif  // SSL_MODELS_RANK_MOMENTS_H_
