// SPDX-License-Identifier: Apache-2.0
//
// Loss scaling for float16 training (Micikevicius et al. 2018, arXiv:1710.03740) by the rules of torch.amp.GradScaler:
// the loss is multiplied by a scale so that small gradients do not vanish; a step whose gradients overflow is skipped
// and lowers the scale, a long run of finite steps raises it. The scale, its counters and what was found stay on the
// gradients' device, in place: a step waits for nothing.
//
//   scaler.Scale(loss).backward();
//   ... reduce the gradients ...
//   optimizer.Step(scaler.Unscale(optimizer.groups()));  // which does nothing when they are not finite
//   scaler.Update();
//
// Used by the training thread only. Methods may throw LibTorch exceptions.
#ifndef SSL_CORE_GRAD_SCALER_H_
#define SSL_CORE_GRAD_SCALER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ssl/core/optimizer.h"
#include "ssl/core/stateful.h"

namespace ssl {

struct GradScalerOptions {
  double initial_scale = 65536.0;
  double growth_factor = 2.0;      // after growth_interval finite steps in a row, unless the result overflows
  double backoff_factor = 0.5;     // after a step that is not finite
  int64_t growth_interval = 2000;  // steps
  double static_scale = 0.0;       // above 0: the scale is this and never changes; steps are skipped all the same
};

class GradScaler : public Stateful {
 public:
  explicit GradScaler(const GradScalerOptions& options);

  // The loss times the scale, on the loss's device.
  at::Tensor Scale(const at::Tensor& loss);

  // Divides all gradients, of any layout and on one device, by the scale in place. Returns float32 [] on that device,
  // StepContext::found_inf: 1 when one is not finite, so that the update is to be skipped, else 0. The next call
  // overwrites it. Reduced gradients are the same on every rank, and so is the answer.
  const at::Tensor& Unscale(std::vector<ParameterGroup>& groups);

  // Adapts the scale to what the last Unscale found. Once per step, also per skipped one.
  void Update();

  // Waits for the device.
  double scale() const;

  // Updates in a row, up to the last, whose gradients were not finite. Waits for the device.
  int64_t skipped_updates() const;

  // scale; growth_tracker: finite steps since the scale changed; skipped_updates.
  void VisitState(StateVisitor& visitor) override;

 private:
  void MoveTo(const at::Device& device);

  const GradScalerOptions options_;
  at::Tensor scale_;            // float32 []
  at::Tensor growth_tracker_;   // int32 []
  at::Tensor found_inf_;        // float32 []: 1 when the last gradients were not finite, else 0
  at::Tensor skipped_updates_;  // int64 []
  std::vector<at::Tensor> gradients_;
};

}  // namespace ssl

#endif  // SSL_CORE_GRAD_SCALER_H_
