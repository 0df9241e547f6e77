// SPDX-License-Identifier: Apache-2.0
//
// Swapped prediction (SwAV, arXiv 2006.09882, equations 1-2): the assignment of one crop of an image is predicted
// from the scores of its other crops. Pure: no state, no parameters.
//
//   loss = 1/(A (V-1)) sum over assign crops c, crops p != c of mean_b( - sum_k q_c[b,k] log softmax(s_p[b]/T)[k] )
//
// with V crops, A assign crops, B images and scores s, assignments q of Sinkhorn-Knopp; the mean over prototype heads.
#ifndef SSL_LOSSES_SWAV_LOSS_H_
#define SSL_LOSSES_SWAV_LOSS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/losses/sinkhorn.h"

namespace ssl {

struct SwavLossOptions {
  double temperature = 0.1;
  int64_t num_crops = 2;
  // Crops whose scores are turned into assignments, each in [0, num_crops).
  std::vector<int64_t> crops_for_assign = {0, 1};
  SinkhornOptions sinkhorn;
};

struct SwavLossResult {
  // Scalar with its graph, float32: the mean over the local batch.
  at::Tensor loss;
  // Per head: [A, B, K_h] float32, outside the graph.
  std::vector<at::Tensor> assignments;
};

// scores[h]: [V*B, K_h], crop-major. queue_scores: empty, or per head [A, L, K_h], scores of L older samples that take
// part in the balancing. Every rank passes the same shapes. Computes in float32, also under autocast. InvalidArgument
// when the shapes do not fit the options.
absl::StatusOr<SwavLossResult> SwavLoss(const std::vector<at::Tensor>& scores,
                                        const std::vector<at::Tensor>& queue_scores, const SwavLossOptions& options,
                                        Communicator& communicator);

}  // namespace ssl

#endif  // SSL_LOSSES_SWAV_LOSS_H_
