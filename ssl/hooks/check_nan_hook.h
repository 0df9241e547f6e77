// SPDX-License-Identifier: Apache-2.0
//
// Stops a run whose numbers are no longer finite, before they reach weights, optimizer state and checkpoints. Checked
// are, before the optimizer's step, the losses of an update's batches and its gradients (those not with a loss scale,
// which looks at them and skips the update where one overflowed); the loss of each test batch; and the weights, every
// LOG_FREQUENCY updates and after the last. What the step had changed by then (batch statistics, say) is not saved: a
// run that failed saves nothing.
//
// All ranks decide together, because a rank that stopped alone would leave the others waiting: by one reduction of two
// values for an update, however many batches it has. That needs values on the host in every step, which are free on the
// CPU; on an accelerator it is done where weights are looked at, and once more at the end of a run that ends in
// between. Stage kGuard.
#ifndef SSL_HOOKS_CHECK_NAN_HOOK_H_
#define SSL_HOOKS_CHECK_NAN_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/shared_options.h"
#include "ssl/core/step_context.h"

namespace ssl {

// HOOKS.CHECK_NAN; weights are looked at where a line is reported.
struct CheckNanOptions : public ComponentOptions {
  bool check_nan = true;
  ReportOptions report;

  absl::string_view section() const override { return "HOOKS"; }
  bool enabled() const override { return check_nan; }
  std::vector<SharedOptions> shared() override { return {{"", &report}}; }
  void VisitFields(FieldVisitor& visitor) override;
};

class CheckNanHook : public Hook {
 public:
  // weights_frequency: updates between looks at the weights.
  explicit CheckNanHook(int64_t weights_frequency) : weights_frequency_(weights_frequency) {}

  absl::string_view name() const override { return "check_nan"; }
  HookStage stage() const override { return HookStage::kGuard; }
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  std::vector<PlannedAction> Plan() const override;

  // OutOfRange with iteration, epoch, what is NaN or infinite on any rank, and what to look at. Gradients and weights
  // are named by their parameter.
  //
  // On an accelerator what is found stays on the device until weights are looked at, so that no step waits for it: the
  // error comes up to weights_frequency updates late, after weights have changed, and names the iteration of the look.
  // A state that is not finite is not saved anyway.
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;
  absl::Status OnUpdate(StepContext& context) override;
  // The look at an accelerator; OnEnd of a run that ends between two, unless by an error.
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnException(StepContext& context, const absl::Status& error) override;
  absl::Status OnEnd(StepContext& context) override;

 private:
  bool LooksAfter(int64_t updates, const StepContext& context) const;
  // Notes, on the device, which gradients are not finite.
  void NoteGradients(Optimizer& optimizer);
  absl::Status ReadNotes(StepContext& context);

  const int64_t weights_frequency_;
  bool has_failed_ = false;
  double loss_ = 0.0;  // of the update so far: of its batches the first that is not finite, else the last
  // Since the last look, on an accelerator; undefined when there was nothing to note.
  at::Tensor loss_was_bad_;      // [] bool
  at::Tensor gradient_was_bad_;  // [parameters] bool
};

absl::Status RegisterCheckNanHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_CHECK_NAN_HOOK_H_
