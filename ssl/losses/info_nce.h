// SPDX-License-Identifier: Apache-2.0
//
// Noise-contrastive estimation between views (SimCLR, arXiv 2002.05709, equation 1): an embedding is to recognise the
// other views of its image among views of other images. Pure: no state, no parameters.
//
//   loss = 1/(B V (V-1)) sum over rows i, other views p of the same image of
//          - log( exp(s_ip) / (exp(s_ip) + sum over views n of other images of exp(s_in)) )
//
// with V views of B images, s = z z'^T / temperature and z the embeddings scaled to unit length. With two views this is
// SimCLR's loss.
#ifndef SSL_LOSSES_INFO_NCE_H_
#define SSL_LOSSES_INFO_NCE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct InfoNceOptions {
  int64_t num_views = 2;
  double temperature = 0.1;
  // Whether images of other ranks are negatives; then the gradient flows to them, see gather_with_gradient.h.
  bool negatives_of_all_ranks = true;
};

// embeddings: [V*B, D], view-major, of any length, the same shape on every rank. Returns a scalar with its graph: the
// mean over the local rows; 0 when there are no other images. Computes in float32 (float64 for such embeddings), also
// under autocast, and with the largest term taken out of each sum, so that no temperature overflows. InvalidArgument
// when the shape does not fit the options.
absl::StatusOr<at::Tensor> InfoNce(const at::Tensor& embeddings, const InfoNceOptions& options,
                                   Communicator& communicator);

}  // namespace ssl

#endif  // SSL_LOSSES_INFO_NCE_H_
