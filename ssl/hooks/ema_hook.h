// SPDX-License-Identifier: Apache-2.0
//
// Keeps an exponential moving average of the model and measures it (VISSL's EmaHook). Stage kObserve, so that what
// changes the model after an update comes first.
//
// After every UPDATE_ITER-th update, average = DECAY average + (1 - DECAY) value for all float32 tensors of the model's
// state, running statistics included; before the fraction WARMUP of training, averages are copies. Tensors of other
// types (counters) have no average; the model's own are used.
//
// With ENABLE_EMA_METERS, each batch goes through the model once more, in evaluation mode with the averages in place of
// its tensors, and meters of the hook's own measure the outputs. Their reports are named "<meter>_ema",
// or after the instance when it has a name of its own.
//
// State: `names`, the averaged tensors, each ended by a line feed; `averages`, those of the parameters in one row,
// float32, in that order; `buffers/averages/values`, those of the other tensors, likewise; the meters. Parameters are
// the same on all ranks and stand once in a checkpoint, while batch statistics are each rank's own; those that ranks
// share out stand there whole, too (ssl/core/sharded_state.h). Checkpoints of older versions, which have all of them in
// `averages`, are restored; their averages of shards, by as many ranks with the same task.
#ifndef SSL_HOOKS_EMA_HOOK_H_
#define SSL_HOOKS_EMA_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/meter.h"
#include "ssl/core/registries.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section HOOKS.EMA_MODEL. The hook runs with either of the first two.
struct EmaHookOptions : public ComponentOptions {
  bool save_ema_model = false;
  bool enable_ema_meters = false;
  int64_t update_iter = 1;
  double warmup = 0.05;
  double decay = 0.9999;
  std::string ema_device = "gpu";

  absl::string_view section() const override { return "HOOKS.EMA_MODEL"; }
  bool enabled() const override { return save_ema_model || enable_ema_meters; }
  void VisitFields(FieldVisitor& visitor) override;
};

// Averages of several tensors, one after the other.
struct PackedAverages : public Stateful {
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("values", values); }

  at::Tensor values;  // [N], while a checkpoint is read or written
};

// A part of the state that a checkpoint of an older version lacks.
struct AddedAverages : public Stateful {
  void VisitState(StateVisitor& visitor) override;

  PackedAverages packed;
};

class EmaHook : public Hook {
 public:
  // meters: none unless the averages are to be measured. in_training: measure in train phases, too.
  EmaHook(const EmaHookOptions& options, std::vector<std::unique_ptr<Meter>> meters, bool in_training);

  absl::string_view name() const override { return "ema"; }
  HookStage stage() const override { return HookStage::kObserve; }
  std::vector<PlannedAction> Plan() const override;
  // What runs the model once more, or not after each update, is done when the update is over.
  WithinUpdate within_update() const override;
  // Whether averages are copies still.
  int64_t RecordingKey(const StepContext& context) const override { return IsWarm(context) ? 1 : 0; }

  // Starts with copies of the model, or with the restored averages. InvalidArgument when those are of other tensors.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnUpdate(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  // Adds to context.meter_reports.
  absl::Status OnPhaseEnd(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

 private:
  bool IsWarm(const StepContext& context) const { return context.state.where() >= options_.warmup; }
  bool Measures(const StepContext& context) const;
  absl::Status Measure(StepContext& context);
  void Pack();
  // Fills averages_ from what a checkpoint had. InvalidArgument when that is of another size.
  absl::Status Unpack();
  bool IsPacked() const { return of_parameters_.defined(); }
  void DropPacked();

  const EmaHookOptions options_;
  const std::vector<std::unique_ptr<Meter>> meters_;
  const bool in_training_;

  std::vector<at::Tensor> values_;    // the model's live tensors
  std::vector<at::Tensor> averages_;  // at the same positions; empty before the start
  std::vector<bool> are_parameters_;  // likewise
  std::string names_;
  // While a checkpoint is read or written.
  at::Tensor of_parameters_;  // [N]; of all tensors in a checkpoint of an older version
  AddedAverages of_buffers_;
};

absl::Status RegisterEmaHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_EMA_HOOK_H_
