// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_clip_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ssl {

void GradClipOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_GRAD_CLIP", &use_grad_clip, Doc("clip gradients by their norm before each update"));
  visitor.Field("NORM_TYPE", &norm_type, Doc("p of the norm: a number above 0, or inf"));
  visitor.Field("MAX_NORM", &max_norm, Doc("largest norm of all gradients together").Above(0));
}

absl::StatusOr<double> ParseNormType(absl::string_view text) {
  double norm_type = 0.0;
  if (absl::EqualsIgnoreCase(text, "inf")) return std::numeric_limits<double>::infinity();
  if (absl::SimpleAtod(text, &norm_type) && norm_type > 0.0) return norm_type;
  return absl::InvalidArgumentError(
      absl::StrCat("config.MODEL.GRAD_CLIP.NORM_TYPE is '", text, "', expected a number above 0, or inf"));
}

at::Tensor ClipGradNorm(const std::vector<at::Tensor>& gradients, double norm_type, double max_norm) {
  constexpr double kEps = 1e-6;  // as torch
  const at::NoGradGuard no_grad;
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, norm_type)), norm_type);
  at::_foreach_mul_(gradients, (max_norm / (norm + kEps)).clamp_max(1.0));
  return norm;
}

absl::Status GradClipHook::OnStart(StepContext& context) {
  parameters_.clear();
  for (const NamedParameter& parameter : context.model.Parameters()) parameters_.push_back(parameter.value);
  return absl::OkStatus();
}

absl::Status GradClipHook::OnBackward(StepContext& context) {
  gradients_.clear();
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients_.push_back(parameter.grad());
  }
  if (gradients_.empty()) return absl::OkStatus();
  context.metrics.Add("Training/grad_norm", ClipGradNorm(gradients_, norm_type_, max_norm_));
  gradients_.clear();
  return absl::OkStatus();
}

}  // namespace ssl
