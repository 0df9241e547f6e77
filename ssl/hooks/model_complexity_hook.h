// SPDX-License-Identifier: Apache-2.0
//
// Tells at the start how large the model is (VISSL's SSLModelComplexityHook): its parameters, and the multiply-adds and
// activations of the convolutions and matrix products in one forward pass (operation_count.h). One line, on rank 0.
// Stage kReport.
//
// The pass is for one picture of zeros, in evaluation mode and without gradients: it changes nothing that training
// sees. Batch statistics (running_mean, running_var, num_batches_tracked) are no parameters.
#ifndef SSL_HOOKS_MODEL_COMPLEXITY_HOOK_H_
#define SSL_HOOKS_MODEL_COMPLEXITY_HOOK_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/operation_count.h"

namespace ssl {

// The section HOOKS.MODEL_COMPLEXITY.
struct ModelComplexityOptions : public ComponentOptions {
  bool compute_complexity = false;
  std::vector<int64_t> input_shape = {3, 224, 224};  // channels, height, width

  absl::string_view section() const override { return "HOOKS.MODEL_COMPLEXITY"; }
  bool enabled() const override { return compute_complexity; }
  void VisitFields(FieldVisitor& visitor) override;
};

struct ModelComplexity {
  int64_t parameters = 0;  // frozen ones included
  int64_t trainable_parameters = 0;
  OperationCount operations;
};

// input_shape: [C, H, W] of a picture. Leaves the model in evaluation mode. An exception of the forward pass becomes a
// Status: a model whose inputs have names (MODEL.MULTI_INPUT_HEAD_MAPPING) is InvalidArgument.
absl::StatusOr<ModelComplexity> MeasureComplexity(Model& model, const std::vector<int64_t>& input_shape);

class ModelComplexityHook : public Hook {
 public:
  // input_shape: [C, H, W], each at least 1.
  explicit ModelComplexityHook(std::vector<int64_t> input_shape) : input_shape_(std::move(input_shape)) {}

  absl::string_view name() const override { return "model_complexity"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;

 private:
  const std::vector<int64_t> input_shape_;
};

absl::Status RegisterModelComplexityHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_MODEL_COMPLEXITY_HOOK_H_
