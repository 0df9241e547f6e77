// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/class_numbers.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

absl::Status CheckShapes(const at::Tensor& output, const at::Tensor& targets) {
  const bool class_numbers = targets.dim() == 1 && targets.scalar_type() == at::kLong;
  const bool fits = output.dim() == 2 && (class_numbers ? targets.size(0) == output.size(0)
                                                        : targets.dim() == 2 && targets.sizes() == output.sizes());
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("output has shape [", absl::StrJoin(output.sizes(), ", "),
                                                 "] and the targets ", at::toString(targets.scalar_type()), " [",
                                                 absl::StrJoin(targets.sizes(), ", "),
                                                 "], expected [B, C] with Long [B] or weights [B, C]"));
}

int64_t TorchReduction(LossReduction reduction) {
  return reduction == LossReduction::kMean ? at::Reduction::Mean : at::Reduction::Sum;
}

}  // namespace

absl::StatusOr<at::Tensor> CrossEntropy(const at::Tensor& output, const at::Tensor& targets,
                                        const CrossEntropyOptions& options) {
  SSL_RETURN_IF_ERROR(CheckShapes(output, targets));
  at::Tensor scores = FullPrecision(output);
  if (options.normalize_output) scores = UnitRows(scores);
  if (options.temperature != 1.0) scores = scores / options.temperature;
  const int64_t reduction = TorchReduction(options.reduction);
  if (targets.dim() == 1) {
    SSL_RETURN_IF_ERROR(CheckClassNumbers(targets, output.size(1), options.ignore_index));
    return at::cross_entropy_loss(scores, targets, options.weight, reduction, options.ignore_index,
                                  options.label_smoothing);
  }
  const at::Tensor weights = targets.is_floating_point() ? targets : targets.clamp_min(0);
  return at::cross_entropy_loss(scores, weights.to(scores.scalar_type()), /*weight=*/{}, reduction,
                                /*ignore_index=*/-100, options.label_smoothing);
}

}  // namespace ssl
