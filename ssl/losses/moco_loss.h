// SPDX-License-Identifier: Apache-2.0
//
// Contrast with a queue of keys (MoCo, arXiv 1911.05722, equation 1): a query has to find its key among negatives.
//
//   loss = mean over images b of  - log softmax([q_b . k_b, q_b . n_1, ..., q_b . n_K] / T)[0]
//
// with queries q, keys k and queued keys n of unit length. The gradient of the queries, a softmax away from the loss,
// is computed together with it: keys and queue may change before backward, and no [B, K] tensor waits for it. Pure; any
// thread.
#ifndef SSL_LOSSES_MOCO_LOSS_H_
#define SSL_LOSSES_MOCO_LOSS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

namespace ssl {

// query: [B, D] floating, of any length. keys: [B, D], queue: [K, D], float32 rows of unit length without a graph.
// temperature: above 0. Returns a float32 scalar with its graph, which leads to the query; in float32 also under
// autocast. InvalidArgument when the shapes do not fit. May throw LibTorch exceptions.
absl::StatusOr<at::Tensor> MocoLoss(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue,
                                    double temperature);

}  // namespace ssl

#endif  // SSL_LOSSES_MOCO_LOSS_H_
