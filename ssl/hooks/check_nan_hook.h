// SPDX-License-Identifier: Apache-2.0
//
// Stops a run whose loss is no longer finite, before backward and update, so that weights, optimizer state and the
// checkpoints written from them stay good.
//
// All ranks decide together (one value is reduced by maximum), because a rank that stopped alone would leave the others
// waiting. That needs the loss's value on the host in every step: free on the CPU; on a GPU the host waits for the
// forward pass before it queues the backward pass. HOOKS.CHECK_NAN false removes hook and wait. Stage kGuard.
#ifndef SSL_HOOKS_CHECK_NAN_HOOK_H_
#define SSL_HOOKS_CHECK_NAN_HOOK_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"

namespace ssl {

class CheckNanHook : public Hook {
 public:
  absl::string_view name() const override { return "check_nan"; }
  HookStage stage() const override { return HookStage::kGuard; }

  // OutOfRange with iteration, epoch, the loss and what to look at, when the loss is NaN or infinite on any rank.
  absl::Status OnLossAndMeter(StepContext& context) override;
};

}  // namespace ssl

#endif  // SSL_HOOKS_CHECK_NAN_HOOK_H_
