// SPDX-License-Identifier: Apache-2.0
//
// Batch norm by moments that several ranks share, for any device, layout and floating type. The fused operation of the
// CPU is in batch_norm_relu.h.
//
// Backward: with h = (x - mean) / sigma, the gradient g of the output and sums over the values of all ranks,
//
//   dx = weight / sigma (g - sum g / N - h sum(g h) / N)
//
// which is the gradient of the sum of all ranks' losses. The gradients of weight and bias are sums over this rank's
// values alone, as of any other parameter. So backward is collective: one all-reduce per layer, in the reverse order of
// the forward pass (autograd runs the newest nodes first). A rank on which the layer's output has no gradient gives
// zeros, as long as its backward pass comes there; see join_gradients.h.
#ifndef SSL_MODELS_SYNC_BATCH_NORM_H_
#define SSL_MODELS_SYNC_BATCH_NORM_H_

#include <ATen/core/Tensor.h>

#include <memory>

#include "ssl/distributed/communicator.h"
#include "ssl/models/rank_moments.h"

namespace ssl {

// weight (input - mean) / sqrt(variance + eps) + bias. input: [N, C] or [N, C, H, W]; moments: MomentsOfRanks of
// `group`, on the input's device. Not differentiable twice.
at::Tensor NormalizeOverRanks(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                              const ChannelMoments& moments, const std::shared_ptr<Communicator>& group);

}  // namespace ssl

#endif  // SSL_MODELS_SYNC_BATCH_NORM_H_
