// SPDX-License-Identifier: Apache-2.0
//
// Sinkhorn-Knopp: soft assignments of samples to prototypes that use all prototypes equally often.
//
// Of all matrices Q >= 0 whose columns (prototypes) have the prescribed mass and whose rows (samples) have equal
// mass, it returns, row-normalised, the one that maximises <Q, S> + epsilon * entropy(Q) for scores S (Cuturi, arXiv
// 1306.0895; SwAV, arXiv 2006.09882, equation 3). The batch is spread over the ranks: masses of prototypes are summed
// over all of them. Nothing here waits for the device.
//
//   SSL_ASSIGN_OR_RETURN(at::Tensor q, SinkhornAssignments(scores, {}, communicator));  // rows of q sum to 1
#ifndef SSL_LOSSES_SINKHORN_H_
#define SSL_LOSSES_SINKHORN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct SinkhornOptions {
  // Regularisation: smaller gives harder assignments.
  double epsilon = 0.05;
  // Alternations of prototype and sample normalisation; at least 1.
  int64_t num_iters = 3;
  // Computes in float64 without shifting scores by their maximum, as VISSL does.
  bool double_precision = false;
  // Replaces each row by the one-hot vector of its maximum.
  bool hard = false;
  // Prototype i (from 1) gets mass proportional to 1 / i^powerlaw; 0: equal masses.
  double powerlaw = 0.0;
};

// scores: [..., n, K]: n samples of this rank, K prototypes; leading dimensions are independent problems that share
// the collective operations. Every rank passes the same shape. Returns float32 assignments of the same shape whose
// rows sum to 1, outside the graph. InvalidArgument for a scores tensor without rows or columns.
absl::StatusOr<at::Tensor> SinkhornAssignments(const at::Tensor& scores, const SinkhornOptions& options,
                                               Communicator& communicator);

// The iteration itself. weights: [..., n, K], non-negative. Infinite entries count as the largest finite
// one; when a prototype has no mass, 1e-12 is added to every entry (VISSL's repair). Uses options.num_iters and
// options.powerlaw. Returns float32 rows that sum to 1.
absl::StatusOr<at::Tensor> BalanceAssignments(at::Tensor weights, const SinkhornOptions& options,
                                              Communicator& communicator);

}  // namespace ssl

#endif  // SSL_LOSSES_SINKHORN_H_
