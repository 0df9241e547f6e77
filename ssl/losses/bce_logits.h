// SPDX-License-Identifier: Apache-2.0
//
// Binary cross entropy of multi-label scores, as VISSL's bce_logits_multiple_output_single_target computes it for each
// output. Labels that nobody knows (-1) do not count, and each class is averaged over the samples that do:
//
//   loss = sum_c 1/max(1, n_c) sum over known b of  - t log sigmoid(s) - (1 - t) log(1 - sigmoid(s))
//
// with n_c known labels of class c in the batch. Pure; any thread.
#ifndef SSL_LOSSES_BCE_LOGITS_H_
#define SSL_LOSSES_BCE_LOGITS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

namespace ssl {

// output: [B, C] scores, floating. targets: [B, C], integer or floating, 1 and 0 (or a weight between them), -1 for
// unknown. normalize_output: scores of a sample to unit length first. Returns a scalar with its graph, at least float32
// also under autocast. InvalidArgument when the shapes differ. May throw LibTorch exceptions.
absl::StatusOr<at::Tensor> BceLogits(const at::Tensor& output, const at::Tensor& targets, bool normalize_output);

}  // namespace ssl

#endif  // SSL_LOSSES_BCE_LOGITS_H_
