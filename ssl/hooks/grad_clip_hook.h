// SPDX-License-Identifier: Apache-2.0
//
// Scales all gradients together by min(1, limit / (norm + 1e-6)) before the optimizer sees them, where norm is the
// p-norm of all of them (torch.nn.utils.clip_grad_norm_). Stage kMutate. Two ways to configure one class:
//
// - `grad_clip`, the section MODEL.GRAD_CLIP (VISSL's GradClipHook): the limit is MAX_NORM.
// - `grad_clipper`, an entry of config.hooks (United Perception's): the limit is max_norm (mode pre_defined), or
// follows
//   the norms g_1, g_2, ... of the run, the present one included and before clipping:
//     average:         M_k = (M_0 + tolerance (g_1 + ... + g_k)) / (k + 1)
//     moving_average:  M_k = momentum M_(k-1) + (1 - momentum) tolerance g_k
//   with M_0 = max_norm. M_0 is 0 by default, so that first limits are too small; bias_correction takes M_0's share
//   out.
//
// The norm and the limit stay on the device; nobody waits for them, but a line of display_freq does. Metrics:
// Training/grad_norm, before clipping; Training/grad_norm_limit where that changes; Training/<name>/... of an instance
// with a name of its own. Gradients that are not finite stay so and leave the limit as it is; an update that overflowed
// float16 gradients skip has neither norm nor limit in the reports. Gradients that freeze_parameters drops count, as in
// VISSL. Both are told in OnStep: OnUpdate finds those of the update before in the history, and a train step that calls
// Update several times tells of its last call alone. State of the modes that follow the run: `limit` and `updates`.
#ifndef SSL_HOOKS_GRAD_CLIP_HOOK_H_
#define SSL_HOOKS_GRAD_CLIP_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section MODEL.GRAD_CLIP.
struct GradClipOptions : public ComponentOptions {
  bool use_grad_clip = false;
  std::string norm_type = "2";  // "inf", or a number above 0
  double max_norm = 1.0;

  absl::string_view section() const override { return "MODEL.GRAD_CLIP"; }
  bool enabled() const override { return use_grad_clip; }
  void VisitFields(FieldVisitor& visitor) override;
};

// The kwargs of grad_clipper; United Perception's names and defaults, but for bias_correction, which is ours.
struct GradClipperOptions : public ComponentOptions {
  std::string mode;  // "" until it is set
  double max_norm = 0.0;
  std::string norm_type = "2";
  double momentum = -1.0;  // below 0 until it is set
  double tolerance = 1.0;
  bool bias_correction = false;
  int64_t display_freq = -1;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

// "inf", or a number above 0; InvalidArgument, which begins with `place` ("file:line: key"), for anything else.
absl::StatusOr<double> ParseNormType(absl::string_view text, absl::string_view place);

// The p-norm of all `gradients` (at least one, on one device) together, a scalar. May throw LibTorch exceptions.
at::Tensor GradNorm(const std::vector<at::Tensor>& gradients, double norm_type);
// Scales `gradients`, whose norm is given, in place. limit: a scalar.
void ClipToNorm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm, const at::Tensor& limit);

enum class GradClipMode { kPreDefined, kAverage, kMovingAverage };

// How a limit comes about; the fields of GradClipperOptions.
struct GradClipRule {
  GradClipMode mode = GradClipMode::kPreDefined;
  double norm_type = 2.0;
  double max_norm = 1.0;
  double momentum = 0.0;
  double tolerance = 1.0;
  bool bias_correction = false;
  int64_t display_freq = -1;
};

class GradClipHook : public Hook {
 public:
  // name: of the type, grad_clip or grad_clipper.
  GradClipHook(std::string name, const GradClipRule& rule);

  absl::string_view name() const override { return name_; }
  HookStage stage() const override { return HookStage::kMutate; }
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;
  // Tells norm and limit of the update.
  absl::Status OnStep(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

  // Takes one norm into account and returns the limit for it, both scalars.
  at::Tensor NextLimit(const at::Tensor& norm);

 private:
  // "Training/grad_norm"; "Training/<instance>/grad_norm" for one with a name of its own.
  std::string MetricName(absl::string_view what) const;
  // Of the gradients there are, of which ranks may have shards. Collective then.
  absl::StatusOr<at::Tensor> NormOfAll(StepContext& context) const;
  absl::Status Show(const StepContext& context, const at::Tensor& limit) const;

  const std::string name_;
  const GradClipRule rule_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;  // of the step; kept for its memory
  at::Tensor limit_;                   // M, float64 scalar, where the gradients are
  at::Tensor updates_;                 // k, the same
  // Of the last update, scalars that each update writes over: a recorded one changes nothing else. Undefined before.
  at::Tensor last_norm_;
  at::Tensor last_limit_;
  bool has_clipped_ = false;  // in the last update
};

absl::Status RegisterGradClipHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_GRAD_CLIP_HOOK_H_
