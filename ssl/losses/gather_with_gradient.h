// SPDX-License-Identifier: Apache-2.0
//
// The tensors of all ranks as part of the graph: what a loss computes from another rank's rows is differentiated, too.
#ifndef SSL_LOSSES_GATHER_WITH_GRADIENT_H_
#define SSL_LOSSES_GATHER_WITH_GRADIENT_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// rows: any shape, equal on all ranks. Returns [size, ...shape of rows], rank-major.
//
// The gradient of `rows` is that of the sum of all ranks' losses, so every rank must run its backward pass: it is
// collective, and throws c10::DistBackendError when the communicator fails there. The communicator outlives the graph.
absl::StatusOr<at::Tensor> GatherWithGradient(const at::Tensor& rows, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_LOSSES_GATHER_WITH_GRADIENT_H_
