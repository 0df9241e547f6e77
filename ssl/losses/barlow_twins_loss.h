// SPDX-License-Identifier: Apache-2.0
//
// Redundancy reduction (Barlow Twins, arXiv 2103.03230, equations 1-2): the cross-correlation of two views' embeddings
// is to be the identity. Pure: no state, no parameters.
//
//   c = A^T A' / B, the mean over the ranks;  loss = scale ( sum_i (c_ii - 1)^2 + lambda sum_{i != j} c_ij^2 )
//
// with A, A' [B, D] the two views' embeddings, each feature with mean 0 and variance 1 over both views of all ranks.
#ifndef SSL_LOSSES_BARLOW_TWINS_LOSS_H_
#define SSL_LOSSES_BARLOW_TWINS_LOSS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct BarlowTwinsLossOptions {
  double lambda = 0.0051;
  double scale = 0.024;
};

// embeddings: [2*B, D], view-major, the same shape on every rank. Returns a scalar with its graph, equal on all ranks.
// The gradient is that of this one loss with respect to the rank's own embeddings, through c and the statistics; a
// trainer that averages parameter gradients over the ranks, as VISSL's does, has 1/size of the true one. The backward
// pass is collective, see gather_with_gradient.h. Holds one D x D matrix until then. Computes in float32 (float64 for
// such embeddings), also under autocast. InvalidArgument for another shape.
absl::StatusOr<at::Tensor> BarlowTwinsLoss(const at::Tensor& embeddings, const BarlowTwinsLossOptions& options,
                                           Communicator& communicator);

}  // namespace ssl

#endif  // SSL_LOSSES_BARLOW_TWINS_LOSS_H_
