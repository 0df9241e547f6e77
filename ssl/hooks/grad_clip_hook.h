// SPDX-License-Identifier: Apache-2.0
//
// Clips gradients by their common norm before the optimizer sees them (torch.nn.utils.clip_grad_norm_): with
// MODEL.GRAD_CLIP.USE_GRAD_CLIP, all are scaled by min(1, MAX_NORM / (norm + 1e-6)). Stage kMutate.
//
// The norm stays on the device; nobody waits for it. Metric: Training/grad_norm, before clipping. Gradients that are
// not finite stay so. Gradients that freeze_parameters drops count, as in VISSL.
#ifndef SSL_HOOKS_GRAD_CLIP_HOOK_H_
#define SSL_HOOKS_GRAD_CLIP_HOOK_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section MODEL.GRAD_CLIP.
struct GradClipOptions : public Options {
  bool use_grad_clip = false;
  std::string norm_type = "2";  // "inf", or a number above 0
  double max_norm = 1.0;

  void VisitFields(FieldVisitor& visitor) override;
};

// InvalidArgument, naming the key, unless `text` is "inf" or a number above 0.
absl::StatusOr<double> ParseNormType(absl::string_view text);

// Scales `gradients` (at least one, on one device) in place. Returns their norm before, a scalar. May throw LibTorch
// exceptions.
at::Tensor ClipGradNorm(const std::vector<at::Tensor>& gradients, double norm_type, double max_norm);

class GradClipHook : public Hook {
 public:
  GradClipHook(double norm_type, double max_norm) : norm_type_(norm_type), max_norm_(max_norm) {}

  absl::string_view name() const override { return "grad_clip"; }
  HookStage stage() const override { return HookStage::kMutate; }

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;

 private:
  const double norm_type_;
  const double max_norm_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;  // of the step; kept for its memory
};

}  // namespace ssl

#endif  // SSL_HOOKS_GRAD_CLIP_HOOK_H_
