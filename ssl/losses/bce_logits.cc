// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/bce_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/losses/scores.h"

namespace ssl {

absl::StatusOr<at::Tensor> BceLogits(const at::Tensor& output, const at::Tensor& targets, bool normalize_output) {
  if (output.dim() != 2 || targets.sizes() != output.sizes()) {
    return absl::InvalidArgumentError(absl::StrCat("output has shape [", absl::StrJoin(output.sizes(), ", "),
                                                   "] and the targets [", absl::StrJoin(targets.sizes(), ", "),
                                                   "], expected [B, C] for both"));
  }
  at::Tensor scores = FullPrecision(output);
  if (normalize_output) scores = UnitRows(scores);
  const at::Tensor labels = targets.to(scores.scalar_type());
  const at::Tensor known = labels.ne(-1).to(scores.scalar_type());
  const at::Tensor weight = known / known.sum(0, /*keepdim=*/true).clamp_min(1);  // [B, C]
  return at::binary_cross_entropy_with_logits(scores, labels.clamp_min(0), weight, /*pos_weight=*/{},
                                              at::Reduction::Sum);
}

}  // namespace ssl
