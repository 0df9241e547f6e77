// SPDX-License-Identifier: Apache-2.0
//
// Test phases choose among the classes that the test split has: METERS.model_output_mask fills the scores of all
// others with -inf before loss and meters see them (VISSL's ModelOutputMaskHook; ImageNet-A and -R have 200 of the
// classes that a model was trained for). Stage kMutate.
//
// The source of the first test phase is asked once for its classes; every rank sees the whole split's. Scores are
// filled in place. An output that is not [B, C] is left alone. The loss of a test phase stays finite as long as the
// target is one class of the split. Meters of averaged models (HOOKS.EMA_MODEL) are not masked, as in VISSL.
#ifndef SSL_HOOKS_MODEL_OUTPUT_MASK_HOOK_H_
#define SSL_HOOKS_MODEL_OUTPUT_MASK_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/meters/meter_options.h"

namespace ssl {

// METERS.model_output_mask.
struct ModelOutputMaskOptions : public ComponentOptions {
  OutputMaskOptions mask;

  absl::string_view section() const override { return "METERS"; }
  bool enabled() const override { return mask.model_output_mask; }
  std::vector<SharedOptions> shared() override { return {{"METERS", &mask}}; }
};

class ModelOutputMaskHook : public Hook {
 public:
  absl::string_view name() const override { return "model_output_mask"; }
  HookStage stage() const override { return HookStage::kMutate; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // Unimplemented, naming the key, when the test source cannot tell its classes.
  absl::Status OnPhaseStart(StepContext& context) override;
  // InvalidArgument, with both numbers, for a class that an output has no score for.
  absl::Status OnForward(StepContext& context) override;

 private:
  // [C], true at the classes that the split lacks; beside `scores`, [B, C].
  absl::StatusOr<at::Tensor> AbsentClasses(const at::Tensor& scores);

  std::optional<std::vector<int64_t>> classes_;  // ascending
  std::map<int64_t, at::Tensor> absent_;         // by C
};

absl::Status RegisterModelOutputMaskHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_MODEL_OUTPUT_MASK_HOOK_H_
